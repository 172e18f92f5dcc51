#include "model/rows.hpp"

#include "base/round_up.hpp"

namespace quern::model {

using base::round_up;

namespace {

// An odd number of 64-byte lines: rows of 2048 floats, a power of two apart, would share a few sets of the caches and
// push each other out.
std::size_t spread(std::size_t bytes) { return (base::divide_up(bytes, quant::kLineBytes) | 1) * quant::kLineBytes; }

}  // namespace

RowBuffer::RowBuffer(std::size_t n, std::size_t width) : stride(spread(width * sizeof(float)) / sizeof(float)) {
  memory = LazyArray<float>(n * stride);
}

QuantizedInput::QuantizedInput(std::size_t group_, std::size_t n, std::size_t columns)
    : group(group_),
      codes_stride(spread(round_up(columns, quant::kSuperColumns))),
      groups_stride(round_up(codes_stride / group_ + 1, 16)) {
  codes = LazyArray<std::int8_t>(n * codes_stride);
  scales = LazyArray<float>(n * groups_stride);
  sums = LazyArray<std::int32_t>(n * groups_stride);
}

}  // namespace quern::model
