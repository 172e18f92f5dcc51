// Scalar conversions of the small floats: f16, bf16, f8_e4m3 (FN: max 448, no infinity), f8_e5m2.
// Round to nearest even. f8 conversions from float saturate at the largest finite value; NaN stays NaN.
// Storage types are plain integers (the bits); SIMD versions live in kernels/.
#pragma once

#include <bit>
#include <cstdint>

namespace quern::base {

using F16 = std::uint16_t;
using Bf16 = std::uint16_t;
using F8 = std::uint8_t;

float f16_to_float(F16 bits);
F16 float_to_f16(float value);  // beyond 65504 (after rounding): infinity

inline float bf16_to_float(Bf16 bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
Bf16 float_to_bf16(float value);

float f8_e4m3_to_float(F8 bits);
F8 float_to_f8_e4m3(float value);
float f8_e5m2_to_float(F8 bits);
F8 float_to_f8_e5m2(float value);

}  // namespace quern::base
