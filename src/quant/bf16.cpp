#include "quant/bf16.hpp"

#include "base/small_float.hpp"
#include "quant/half_lines.hpp"

namespace quern::quant {

namespace {

constexpr base::Bf16 kLargestBf16 = 0x7F7F;

// Saturating: the top half step of f32's range would round to infinity.
base::Bf16 to_bits(float value) {
  const base::Bf16 bits = base::float_to_bf16(value);
  const bool infinite = (bits & 0x7FFF) == 0x7F80;
  return infinite ? static_cast<base::Bf16>((bits & 0x8000) | kLargestBf16) : bits;
}

}  // namespace

void Bf16::encode(const float* values, std::size_t stride, std::size_t columns, const float*,
                  std::byte* super_block) {
  store_half_lines(values, stride, columns, super_block, to_bits);
}

void Bf16::decode(const std::byte* super_block, std::size_t columns, float* values,
                  std::size_t stride) {
  load_half_lines(super_block, columns, values, stride, base::bf16_to_float);
}

}  // namespace quern::quant
