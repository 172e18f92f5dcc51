// What the readers of the packed schemes share: the tensors by name, what is said of quantization in
// config.json, checks of parts. For the packed_*.cpp files of this folder only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "base/round_up.hpp"
#include "checkpoint/packed_tensor.hpp"

namespace quern::checkpoint {

// quantization_config, as far as it decides the numbers. 0 or empty: not said.
struct PackedConfig {
  std::string method;          // "gptq", "awq", "compressed-tensors", "fp8", "mxfp4", ...; "": none
  std::string format;          // checkpoint_format, version or format of the method
  std::uint64_t bits = 0;      // where all matrices have the same
  std::uint64_t group = 0;     // columns of a scale; one whole row when `whole_rows`
  bool whole_rows = false;     // group_size -1
  bool mixed = false;          // modules may differ: their tensors decide
  std::uint64_t block_rows = 128, block_columns = 128;
};

// The tensors of the files while they are joined.
class PackedParts {
 public:
  PackedParts(const std::vector<SourceTensor>& tensors, PackedConfig config, std::string where);

  const PackedConfig& config() const { return config_; }
  // A part that belongs to a joined tensor: it is no tensor of its own any more.
  const SourceTensor* take(const std::string& name);
  const SourceTensor& need(const std::string& name, std::string_view owner);
  const SourceTensor* find(const std::string& name) const;
  bool taken(const SourceTensor& tensor) const;
  std::string place(std::string_view tensor) const;  // for error lines
  // Stored zero points that implementations read differently (see packed_gptq.cpp): they become a notice.
  void count_doubtful_zeros(std::uint64_t n) { n_doubtful_zeros_ += n; }
  std::uint64_t n_doubtful_zeros() const { return n_doubtful_zeros_; }

 private:
  const std::vector<SourceTensor>& tensors_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
  std::vector<bool> taken_;
  PackedConfig config_;
  std::string where_;
  std::uint64_t n_doubtful_zeros_ = 0;
};

std::string shape_text(const std::vector<std::uint64_t>& shape);

// Input errors that name the part.
void expect_type(const PackedParts& parts, const SourceTensor& part,
                 std::initializer_list<DType> types);
void expect_shape(const PackedParts& parts, const SourceTensor& part,
                  const std::vector<std::uint64_t>& shape);

// Value `index` of a plain tensor.
float float_at(const SourceTensor& tensor, std::uint64_t index);
std::int64_t integer_at(const SourceTensor& tensor, std::uint64_t index);

using base::divide_up;

// Columns of a scale where a row of `columns` has n_groups of them: the configured size, one whole
// row, or, where modules may differ or nothing is said, an equal share or a usual size. An input error of `scales` when none of them gives n_groups.
std::uint64_t group_of(const PackedParts& parts, const SourceTensor& scales, std::uint64_t columns,
                       std::uint64_t n_groups);
std::string group_name(std::uint64_t group, std::uint64_t columns);  // "groups of 128", "whole rows"

// A list of groups, one per column; empty when column i is in group i / group. Input errors: wrong
// length, a number that is no group.
std::vector<std::uint32_t> column_order(const PackedParts& parts, const SourceTensor& g_idx,
                                        std::uint64_t columns, std::uint64_t group,
                                        std::uint64_t n_groups);

// The joined tensor: name, shape and reader; bytes and file of `main`, the others as parts.
SourceTensor joined(std::string name, std::vector<std::uint64_t> shape,
                    std::shared_ptr<const PackedTensor> reader, const SourceTensor& main,
                    std::initializer_list<const SourceTensor*> others);

// One scheme each: the joined tensor when `main` is the first part of one.
std::optional<SourceTensor> join_gptq(PackedParts& parts, const SourceTensor& main);
std::optional<SourceTensor> join_awq(PackedParts& parts, const SourceTensor& main);
std::optional<SourceTensor> join_pack_quantized(PackedParts& parts, const SourceTensor& main);
std::optional<SourceTensor> join_scaled(PackedParts& parts, const SourceTensor& main);
std::optional<SourceTensor> join_mxfp4(PackedParts& parts, const SourceTensor& main);

}  // namespace quern::checkpoint
