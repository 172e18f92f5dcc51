#include "quant/f16.hpp"

#include "base/small_float.hpp"
#include "quant/f16_scale.hpp"
#include "quant/half_lines.hpp"

namespace quern::quant {

void F16::encode(const float* values, std::size_t stride, std::size_t columns, const float*,
                 std::byte* super_block) {
  store_half_lines(values, stride, columns, super_block, to_f16_saturated);
}

void F16::decode(const std::byte* super_block, std::size_t columns, float* values,
                 std::size_t stride) {
  load_half_lines(super_block, columns, values, stride, base::f16_to_float);
}

}  // namespace quern::quant
