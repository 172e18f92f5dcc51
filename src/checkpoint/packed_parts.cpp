#include "checkpoint/packed_parts.hpp"

#include <algorithm>
#include <cstring>

#include "checkpoint/dequant.hpp"

namespace quern::checkpoint {

using base::cat;
using base::reject;

PackedParts::PackedParts(const std::vector<SourceTensor>& tensors, PackedConfig config,
                         std::string where)
    : tensors_(tensors),
      taken_(tensors.size(), false),
      config_(std::move(config)),
      where_(std::move(where)) {
  by_name_.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) by_name_.emplace(tensors[i].name, i);
}

const SourceTensor* PackedParts::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

const SourceTensor* PackedParts::take(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return nullptr;
  taken_[found->second] = true;
  return &tensors_[found->second];
}

const SourceTensor& PackedParts::need(const std::string& name, std::string_view owner) {
  if (const SourceTensor* part = take(name)) return *part;
  reject(place(owner), cat("quantized tensor without its part ", base::printable(name, 120)));
}

bool PackedParts::taken(const SourceTensor& tensor) const {
  return taken_[static_cast<std::size_t>(&tensor - tensors_.data())];
}

std::string PackedParts::place(std::string_view tensor) const {
  return cat(where_, ": tensor \"", base::printable(tensor, 120), "\"");
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string text = "[";
  for (const std::uint64_t n : shape) text += cat(text.size() > 1 ? ", " : "", n);
  return text + "]";
}

void expect_type(const PackedParts& parts, const SourceTensor& part,
                 std::initializer_list<DType> types) {
  if (std::find(types.begin(), types.end(), part.type) != types.end()) return;
  std::vector<std::string_view> names;
  for (const DType type : types) names.push_back(dtype_name(type));
  reject(parts.place(part.name), "type of a part of a quantized tensor",
         std::string(dtype_name(part.type)), base::join(names, " or "));
}

void expect_shape(const PackedParts& parts, const SourceTensor& part,
                  const std::vector<std::uint64_t>& shape) {
  if (part.shape != shape)
    reject(parts.place(part.name), "shape of a part of a quantized tensor", shape_text(part.shape),
           shape_text(shape));
}

float float_at(const SourceTensor& tensor, std::uint64_t index) {
  float value = 0;
  const std::uint64_t bytes = dtype_block_bytes(tensor.type);
  to_float(tensor.type, tensor.bytes.subspan(index * bytes), 1, &value);
  return value;
}

std::int64_t integer_at(const SourceTensor& tensor, std::uint64_t index) {
  const std::byte* at = tensor.bytes.data() + index * dtype_block_bytes(tensor.type);
  switch (tensor.type) {
    case DType::i8:
      return load<std::int8_t>(at);
    case DType::i32:
      return load<std::int32_t>(at);
    default:
      QUERN_ASSERT(tensor.type == DType::i64);
      return load<std::int64_t>(at);
  }
}

std::uint64_t group_of(const PackedParts& parts, const SourceTensor& scales, std::uint64_t columns,
                       std::uint64_t n_groups) {
  const PackedConfig& config = parts.config();
  const auto fits = [&](std::uint64_t group) {
    return group != 0 && divide_up(columns, group) == n_groups;
  };
  if (n_groups == 1) return columns;
  if (fits(config.group)) return config.group;
  if (config.mixed || (config.group == 0 && !config.whole_rows)) {
    if (n_groups != 0 && columns % n_groups == 0) return columns / n_groups;
    for (const std::uint64_t usual : {128, 64, 32})
      if (fits(usual)) return usual;
  }
  reject(parts.place(scales.name), cat("number of scales of a row of ", columns, " columns"),
         cat(n_groups),
         config.group != 0 ? cat(divide_up(columns, config.group), " of ", config.group, " columns")
                           : "1, or as many equal groups");
}

std::string group_name(std::uint64_t group, std::uint64_t columns) {
  return group >= columns ? "whole rows" : cat("groups of ", group);
}

std::vector<std::uint32_t> column_order(const PackedParts& parts, const SourceTensor& g_idx,
                                        std::uint64_t columns, std::uint64_t group,
                                        std::uint64_t n_groups) {
  expect_type(parts, g_idx, {DType::i32, DType::i64});
  expect_shape(parts, g_idx, {columns});
  std::vector<std::uint32_t> order(columns);
  bool plain = true;
  for (std::uint64_t k = 0; k < columns; ++k) {
    const std::int64_t index = integer_at(g_idx, k);
    if (index < 0 || static_cast<std::uint64_t>(index) >= n_groups)
      reject(parts.place(g_idx.name), cat("group of column ", k), cat(index),
             cat("0 to ", n_groups - 1));
    order[k] = static_cast<std::uint32_t>(index);
    plain = plain && order[k] == k / group;
  }
  if (plain) order.clear();
  return order;
}

SourceTensor joined(std::string name, std::vector<std::uint64_t> shape,
                    std::shared_ptr<const PackedTensor> reader, const SourceTensor& main,
                    std::initializer_list<const SourceTensor*> others) {
  SourceTensor tensor{.name = std::move(name),
                      .type = DType::packed,
                      .shape = std::move(shape),
                      .file = main.file,
                      .bytes = main.bytes};
  tensor.values = 1;
  for (const std::uint64_t n : tensor.shape) tensor.values *= n;
  for (const SourceTensor* part : others)
    if (part != nullptr) tensor.parts.push_back({part->file, part->bytes});
  tensor.reader = std::move(reader);
  return tensor;
}

}  // namespace quern::checkpoint
