// A matrix that a checkpoint stores as codes, scales and zero points in tensors of their own (GPTQ,
// AWQ, compressed-tensors, FP8 with scales, MXFP4), given row by row as one tensor:
//
//   value = scale of its group * (code - zero point of its group)
//
// A packed tensor is always [..., out, in], whatever order the file has: a recipe's `transpose` (for
// families whose float weights are [in, out]) changes nothing.
// Not here: finding the parts of a tensor (join_packed.hpp), the formats of quern (quant/).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace quern::checkpoint {

enum class CodeKind {
  int4,     // 0 .. 15
  int8,     // the bits of an int8
  f8_e4m3,  // the bits of the float
  f8_e5m2,
  e2m1,  // 4-bit float of MXFP4, an index into its table of doubled values; scales are 2^(e - 128)
};

// One stored row.
struct PackedRow {
  std::vector<std::uint8_t> codes;  // [columns]
  std::vector<float> scales;        // [n_groups]
  std::vector<std::int16_t> zeros;  // [n_groups]; 0 where the scheme has none
};

struct PackedShape {
  CodeKind kind;
  std::uint64_t rows, columns;  // rows: all leading dimensions together
  std::uint64_t group;          // columns of one scale; the last group may be shorter
  std::string name;             // "GPTQ int4, groups of 128"
};

class PackedTensor : public TensorReader {
 public:
  explicit PackedTensor(PackedShape shape) : shape_(std::move(shape)) {}
  const PackedShape& shape() const { return shape_; }
  std::uint64_t n_groups() const { return (shape_.columns + shape_.group - 1) / shape_.group; }

  virtual void codes(std::uint64_t row, std::uint8_t* out) const = 0;  // [columns]
  virtual void scales(std::uint64_t row, float* out) const = 0;        // [n_groups]
  virtual void zeros(std::uint64_t row, std::int16_t* out) const;      // [n_groups]
  // nullptr: column i is in group i / group. Else [columns]: the order of an activation-ordered
  // checkpoint, which no format of quern keeps.
  virtual const std::uint32_t* group_of_column() const { return nullptr; }

  void row(std::uint64_t row, PackedRow& out) const;
  void read(std::uint64_t first, std::uint64_t count, float* out) const override;
  const PackedTensor* packed() const override { return this; }

 private:
  PackedShape shape_;
};

// What a code stands for before its scale.
float code_value(CodeKind kind, std::uint8_t code, std::int16_t zero);

// Whether every scale is an f16 exactly; whether every zero point lies in [low, high]. Both look at
// all rows.
bool scales_fit_f16(const PackedTensor& tensor);
bool zeros_fit(const PackedTensor& tensor, int low, int high);

}  // namespace quern::checkpoint
