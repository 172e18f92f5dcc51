#include "model/rows.hpp"

#include "base/round_up.hpp"

namespace quern::model {

using base::round_up;

RowBuffer::RowBuffer(std::size_t n, std::size_t width) : stride(round_up(width, 16)) {
  memory = LazyArray<float>(n * stride);
}

QuantizedInput::QuantizedInput(std::size_t group_, std::size_t n, std::size_t columns)
    : group(group_),
      codes_stride(round_up(columns, quant::kSuperColumns)),
      groups_stride(round_up(codes_stride / group_ + 1, 16)) {
  codes = LazyArray<std::int8_t>(n * codes_stride);
  scales = LazyArray<float>(n * groups_stride);
  sums = LazyArray<std::int32_t>(n * groups_stride);
}

}  // namespace quern::model
