#include "base/small_float.hpp"

#include <cmath>

namespace quern::base {

namespace {

// Layout of a small float: sign, exponent, mantissa.
struct Shape {
  int exponent_bits, mantissa_bits, bias;
  std::uint32_t max_finite;   // bits of the largest finite value
  std::uint32_t overflow;     // bits of what a larger value becomes
  std::uint32_t nan;
};
constexpr Shape kF16{5, 10, 15, 0x7BFF, 0x7C00, 0x7E00};
constexpr Shape kE4m3{4, 3, 7, 0x7E, 0x7E, 0x7F};
constexpr Shape kE5m2{5, 2, 15, 0x7B, 0x7B, 0x7F};

// Round to nearest, ties to even, on the exact value: subnormals fall out of the same arithmetic.
std::uint32_t narrow(float value, const Shape& shape) {
  const std::uint32_t sign =
      (std::bit_cast<std::uint32_t>(value) >> 31) << (shape.exponent_bits + shape.mantissa_bits);
  if (std::isnan(value)) return sign | shape.nan;
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFu;
  if (magnitude == 0) return sign;
  if (magnitude >= 0x7F800000u) return sign | shape.overflow;
  int exponent = static_cast<int>(magnitude >> 23) - 127;
  std::uint32_t mantissa = magnitude & 0x7FFFFFu;
  if (exponent == -127) exponent = -126; else mantissa |= 0x800000u;   // f32 subnormal
  int drop = 23 - shape.mantissa_bits;                                 // bits to round away
  int target = exponent + shape.bias;
  if (target < 1) {
    drop += 1 - target;
    target = 0;
  } else {
    target -= 1;  // the implicit bit adds one to the exponent field below
  }
  if (drop > 25) return sign;
  const std::uint32_t kept = mantissa >> drop;
  const std::uint32_t rest = mantissa & ((1u << drop) - 1u), half = 1u << (drop - 1);
  const std::uint32_t rounded = kept + (rest > half || (rest == half && (kept & 1u) != 0) ? 1u : 0u);
  const std::uint32_t bits = (static_cast<std::uint32_t>(target) << shape.mantissa_bits) + rounded;
  return sign | (bits > shape.max_finite ? shape.overflow : bits);
}

// Exact: a normal value keeps its bits, a subnormal one is its mantissa times a power of two.
float widen(std::uint32_t bits, const Shape& shape, bool has_infinity) {
  const int total = shape.exponent_bits + shape.mantissa_bits, to_f32 = 127 - shape.bias;
  const std::uint32_t sign = (bits >> total & 1u) << 31;
  const std::uint32_t magnitude = bits & ((1u << total) - 1u);
  const std::uint32_t mantissa = magnitude & ((1u << shape.mantissa_bits) - 1u);
  const std::uint32_t exponent = magnitude >> shape.mantissa_bits;
  std::uint32_t wide = (magnitude << (23 - shape.mantissa_bits)) + (static_cast<std::uint32_t>(to_f32) << 23);
  if (has_infinity && exponent == (1u << shape.exponent_bits) - 1u) {
    wide = mantissa == 0 ? 0x7F800000u : 0x7FC00000u;
  } else if (exponent == 0) {
    const auto unit = static_cast<std::uint32_t>(to_f32 + 1 - shape.mantissa_bits) << 23;
    wide = std::bit_cast<std::uint32_t>(static_cast<float>(mantissa) * std::bit_cast<float>(unit));
  }
  return std::bit_cast<float>(sign | wide);
}

}  // namespace

float f16_to_float(F16 bits) { return widen(bits, kF16, true); }
F16 float_to_f16(float value) { return static_cast<F16>(narrow(value, kF16)); }

Bf16 float_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<Bf16>((bits >> 16) | 0x40u);
  return static_cast<Bf16>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

float f8_e4m3_to_float(F8 bits) {
  if ((bits & 0x7Fu) == 0x7Fu) return (bits & 0x80u) != 0 ? -std::nanf("") : std::nanf("");
  return widen(bits, kE4m3, false);
}
F8 float_to_f8_e4m3(float value) { return static_cast<F8>(narrow(value, kE4m3)); }
float f8_e5m2_to_float(F8 bits) { return widen(bits, kE5m2, true); }
F8 float_to_f8_e5m2(float value) { return static_cast<F8>(narrow(value, kE5m2)); }

}  // namespace quern::base
