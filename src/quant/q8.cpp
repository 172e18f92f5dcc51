#include "quant/q8.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "quant/f16_scale.hpp"
#include "quant/grouped_block.hpp"

namespace quern::quant {

namespace {

constexpr float kLargestCode = 127;

// Divisors of the largest value that are tried: a slightly wider step often lies better on the 32 values,
// and much better where the source was itself a grid (a dequantized 4-bit file: half the error).
constexpr float kDivisors[] = {127, 126.5F, 126, 125, 124, 123, 122, 121, 120, 118, 116, 114};

float largest(const float* x) {
  float amax = 0;
  for (std::size_t k = 0; k < kGroupColumns; ++k)
    amax = std::max(amax, std::fabs(representable(x[k])));
  return amax;
}

// amax / divisor in f16. To nearest serves as long as the largest value still rounds to 127; among the
// subnormals a step is coarse and the scale may have to go up by one.
base::F16 scale_bits(float amax, float divisor) {
  const base::F16 scale = to_f16_saturated(amax / divisor);
  const bool covers = amax < (kLargestCode + 0.5F) * base::f16_to_float(scale);
  const bool saturated = base::f16_to_float(scale) >= kLargestF16;
  return covers || saturated ? scale : static_cast<base::F16>(scale + 1);
}

// Code of a value before it becomes a byte: an integer in [-127, 127].
float code_of(float x, float inverse) {
  return round_to_even(std::clamp(x * inverse, -kLargestCode, kLargestCode));
}

float squared_error(const float* x, float scale) {
  const float inverse = 1.0F / scale;
  float sum = 0;
  for (std::size_t k = 0; k < kGroupColumns; ++k) {
    const float value = representable(x[k]);
    const float difference = value - scale * code_of(value, inverse);
    sum += difference * difference;
  }
  return sum;
}

// The candidate with the least squared error, the first of equals.
base::F16 group_scale(const float* x) {
  const float amax = largest(x);
  if (amax == 0) return 0;
  base::F16 best = scale_bits(amax, kDivisors[0]);
  float best_error = squared_error(x, base::f16_to_float(best));
  for (const float divisor : kDivisors) {
    const base::F16 bits = scale_bits(amax, divisor);
    const float error = squared_error(x, base::f16_to_float(bits));
    if (error < best_error) {
      best = bits;
      best_error = error;
    }
  }
  return best;
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
      const float inverse = scale == 0 ? 0 : 1.0F / scale;
      for (std::size_t k = 0; k < kGroupColumns; ++k)
        super_block[byte_line_byte(row, begin + k)] = static_cast<std::byte>(
            static_cast<std::int8_t>(code_of(representable(x[k]), inverse)));
    }
}

void Q8::decode(const std::byte* super_block, std::size_t columns, float* values,
                std::size_t stride) {
  for (std::size_t row = 0; row < kPanelRows; ++row) decode_row(super_block, columns, row, values + row * stride);
}

void Q8::decode_row(const std::byte* super_block, std::size_t columns, std::size_t row, float* values) {
  const std::byte* scales = super_block + scales_offset(columns);
  for (std::size_t begin = 0; begin < columns; begin += kGroupColumns) {
    base::F16 bits;
    std::memcpy(&bits, scales + (begin / kGroupColumns * kPanelRows + row) * 2, 2);
    const float scale = base::f16_to_float(bits);
    for (std::size_t k = begin; k < begin + kGroupColumns; ++k)
      values[k] = scale * static_cast<float>(static_cast<std::int8_t>(super_block[byte_line_byte(row, k)]));
  }
}

}  // namespace quern::quant
