#include "quant/q8.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "quant/f16_scale.hpp"

namespace quern::quant {

namespace {

constexpr float kLargestCode = 127;

std::size_t code_byte(std::size_t row, std::size_t column) {
  return column / 4 * kLineBytes + row * 4 + column % 4;
}

// amax / 127 in f16. To nearest serves as long as the largest value still rounds to 127; among the
// subnormals a step is coarse and the scale may have to go up by one.
base::F16 group_scale(const float* x) {
  float amax = 0;
  for (std::size_t k = 0; k < kGroupColumns; ++k)
    amax = std::max(amax, std::fabs(representable(x[k])));
  if (amax == 0) return 0;
  const base::F16 scale = to_f16_saturated(amax / kLargestCode);
  const bool covers = amax < (kLargestCode + 0.5F) * base::f16_to_float(scale);
  const bool saturated = base::f16_to_float(scale) >= kLargestF16;
  return covers || saturated ? scale : static_cast<base::F16>(scale + 1);
}

}  // namespace

void Q8::encode(const float* values, std::size_t stride, std::size_t columns, const float*,
                std::byte* super_block) {
  std::byte* scales = super_block + scales_offset(columns);
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t begin = 0; begin < columns; begin += kGroupColumns) {
      const float* x = values + row * stride + begin;
      const base::F16 bits = group_scale(x);
      const float scale = base::f16_to_float(bits);
      std::memcpy(scales + (begin / kGroupColumns * kPanelRows + row) * 2, &bits, 2);
      for (std::size_t k = 0; k < kGroupColumns; ++k) {
        const float real =
            scale == 0 ? 0 : std::clamp(representable(x[k]) / scale, -kLargestCode, kLargestCode);
        super_block[code_byte(row, begin + k)] =
            static_cast<std::byte>(static_cast<std::int8_t>(round_to_even(real)));
      }
    }
}

void Q8::decode(const std::byte* super_block, std::size_t columns, float* values,
                std::size_t stride) {
  const std::byte* scales = super_block + scales_offset(columns);
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t k = 0; k < columns; ++k) {
      base::F16 bits;
      std::memcpy(&bits, scales + (k / kGroupColumns * kPanelRows + row) * 2, 2);
      const auto code = static_cast<std::int8_t>(super_block[code_byte(row, k)]);
      values[row * stride + k] = base::f16_to_float(bits) * static_cast<float>(code);
    }
}

}  // namespace quern::quant
