// Rounding for the integer formats: f16 scales that are never infinite, codes to nearest even.
// For the .cpp files of this folder only.
#pragma once

#include <algorithm>

#include "base/small_float.hpp"

namespace quern::quant {

inline constexpr float kLargestF16 = 65504.0F;
inline constexpr float kSmallestF16 = 0x1p-24F;  // subnormal

inline base::F16 to_f16_saturated(float value) {
  return base::float_to_f16(std::clamp(value, -kLargestF16, kLargestF16));
}

// The value that is stored when `value` is.
inline float round_to_f16(float value) {
  return base::f16_to_float(to_f16_saturated(value));
}

// Beyond this no f16 scale reaches a value, and squares of values still fit in a float.
inline constexpr float kLargestValue = 0x1p24F;

// Integer formats have no NaN (convert refuses them unless told otherwise): it becomes 0.
inline float representable(float value) {
  return value != value ? 0 : std::clamp(value, -kLargestValue, kLargestValue);
}

// To nearest even for |value| < 2^22, in plain arithmetic (the library call is slow on plain
// x86-64).
inline float round_to_even(float value) {
  constexpr float kShift = 0x1.8p23F;
  return (value + kShift) - kShift;
}

}  // namespace quern::quant
