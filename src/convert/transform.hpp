// The closed list of transforms between a source tensor and a tensor of the contract, as a view
// that gives rows on demand: nothing is copied before a panel is encoded.
//
//   transpose               [in, out] -> [out, in] (Conv1D weights); float types only
//   transpose_each N        each of N equal groups of rows is transposed: [N x a, b] -> [N x b, a]; alone
//   part I of N             the I-th of N equal parts of the rows (fused q, k, v; one of N experts)
//   every N from I          rows I, I + N, I + 2N, ... (gate and up interleaved)
//   group_rows N A B        rows A .. B-1 of each of N equal groups of rows (fused per head)
//
// A vector [n] counts as n rows of one column, so that weight and bias take the same transforms; a
// tensor [n, out, in] (all experts of a layer) as n * out rows. `transpose` may follow `part`,
// which leaves neighbouring rows; one of the rows of a matrix becomes a vector by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace quern::convert {

class RowView {
 public:
  // Input errors name `where`: unknown transform, shapes that do not divide, more than three
  // dimensions.
  RowView(const checkpoint::SourceTensor& source, const std::vector<std::string>& transforms,
          std::string_view where);

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  const checkpoint::SourceTensor& source() const { return *source_; }
  // Whether a row of the view is not a row as it is stored.
  bool transposed() const { return transposed_ || groups_ > 0 || one_row_; }

  // A vector becomes a matrix of one row: GGUF files store such matrices as vectors.
  void as_one_row();

  // Rows [first, first + count) as float32, [count, columns] with `stride`.
  void read(std::size_t first, std::size_t count, float* out, std::size_t stride) const;

  // Only where it is not transposed: a row's place among the rows of the source, and its bytes as they
  // lie in the file.
  std::uint64_t stored_row(std::size_t row) const;
  base::Bytes row_bytes(std::size_t row) const;

 private:
  struct GroupRows {
    std::size_t group_size, begin, end;
  };
  void apply(std::string_view text, std::string_view where);
  void transpose(std::string_view where);
  std::size_t source_row(std::size_t row) const;
  void transpose_each(std::size_t groups, std::string_view where);
  void read_each(std::size_t first, std::size_t count, float* out, std::size_t stride) const;
  void read_transposed(std::size_t first, std::size_t count, float* out, std::size_t stride) const;

  const checkpoint::SourceTensor* source_;
  std::size_t rows_ = 1, columns_ = 1;
  bool transposed_ = false;
  bool one_row_ = false;
  std::size_t groups_ = 0;     // of transpose_each
  std::size_t first_row_ = 0;  // of the source, where the view is transposed
  std::vector<GroupRows>
      selections_;  // in the order applied; after the transposition if there is one
};

}  // namespace quern::convert
