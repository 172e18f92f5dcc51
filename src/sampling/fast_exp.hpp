// exp() of floats <= 0 in a form that compilers turn into vectors: relative error below 2e-7, the
// same bits on every machine. For whole vocabularies; a few candidates take std::exp.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace quern::sampling {

inline constexpr float kLeastExponent = -87.0F;  // below it the result is that of this one, 1.6e-38

// exp(r) of small r: Taylor's series to r^7.
inline float exp_series(float r) {
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  return p * r + 1.0F;
}

// exp(x) = 2^n * exp(r), |r| <= ln(2) / 2, with r from a two-part ln(2).
inline float fast_exp(float x) {
  x = x < kLeastExponent ? kLeastExponent : x;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  const std::uint32_t power = (std::bit_cast<std::uint32_t>(shifted) + 127U) << 23;
  return exp_series(r) * std::bit_cast<float>(power);
}

// fast_exp() of each, the same bits. One loop would stay scalar: gcc 12 makes no vectors across std::bit_cast.
template <std::size_t N>
void fast_exp_all(float (&x)[N]) {
  constexpr float kRound = 12582912.0F;
  float shifted[N], powers[N];
  std::uint32_t bits[N];
  for (float& value : x) value = value < kLeastExponent ? kLeastExponent : value;
  for (std::size_t i = 0; i < N; ++i) shifted[i] = x[i] * 1.44269504F + kRound;
  for (std::size_t i = 0; i < N; ++i) {
    const float n = shifted[i] - kRound;
    const float r = (x[i] - n * 0.693359375F) - n * -2.12194440e-4F;
    x[i] = exp_series(r);
  }
  std::memcpy(bits, shifted, sizeof bits);
  for (std::uint32_t& b : bits) b = (b + 127U) << 23;
  std::memcpy(powers, bits, sizeof powers);
  for (std::size_t i = 0; i < N; ++i) x[i] *= powers[i];
}

}  // namespace quern::sampling
