// exp() of floats <= 0 in a form that compilers turn into vectors: relative error below 2e-7, the
// same bits on every machine. For whole vocabularies; a few candidates take std::exp.
#pragma once

#include <bit>
#include <cstdint>

namespace quern::sampling {

inline constexpr float kLeastExponent = -87.0F;  // below it the result is that of this one, 1.6e-38

// exp(x) = 2^n * exp(r), |r| <= ln(2) / 2, with r from a two-part ln(2) and Taylor's series to r^7.
inline float fast_exp(float x) {
  x = x < kLeastExponent ? kLeastExponent : x;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const std::uint32_t power = (std::bit_cast<std::uint32_t>(shifted) + 127U) << 23;
  return p * std::bit_cast<float>(power);
}

}  // namespace quern::sampling
