#include "quant/mxfp4.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "quant/f16_scale.hpp"
#include "quant/grouped_block.hpp"

namespace quern::quant {

namespace {

constexpr int kLargestExponent = 254;  // 255 is no number

struct Group {
  std::uint8_t exponent = 0;
  std::uint8_t codes[kGroupColumns] = {};
};

// The nearest value of the table, ties to the smaller magnitude.
std::uint8_t nearest_code(float x) {
  const float magnitude = std::fabs(x);
  unsigned best = 0;
  for (unsigned u = 1; u < 8; ++u)
    if (std::fabs(magnitude - Mxfp4::kValues[u]) < std::fabs(magnitude - Mxfp4::kValues[best]))
      best = u;
  return static_cast<std::uint8_t>(x < 0 && best != 0 ? best + 8 : best);
}

double assign(const float* x, const float* weights, int exponent, Group& group) {
  const float inverse = std::ldexp(1.0F, std::min(Mxfp4::kBias - exponent, 127));
  const float scale = std::ldexp(1.0F, exponent - Mxfp4::kBias);
  group.exponent = static_cast<std::uint8_t>(exponent);
  double error = 0;
  for (std::size_t k = 0; k < kGroupColumns; ++k) {
    group.codes[k] = nearest_code(x[k] * inverse);
    const double difference = double{x[k]} - double{scale} * Mxfp4::kValues[group.codes[k]];
    error += (weights == nullptr ? 1.0 : double{weights[k]}) * difference * difference;
  }
  return error;
}

// The exponents around the one at which the largest value is the table's largest.
Group fit(const float* values, const float* weights) {
  float x[kGroupColumns], largest = 0;
  for (std::size_t k = 0; k < kGroupColumns; ++k) {
    x[k] = representable(values[k]);
    largest = std::max(largest, std::fabs(x[k]));
  }
  Group best;
  if (largest == 0) return best;
  const int middle = std::ilogb(largest) + Mxfp4::kBias - 3;  // values reach 12 = 1.5 * 2^3
  double best_error = 0;
  for (int exponent = middle - 1; exponent <= middle + 1; ++exponent) {
    Group group;
    const double error = assign(x, weights, std::clamp(exponent, 0, kLargestExponent), group);
    if (exponent != middle - 1 && !(error < best_error)) continue;
    best = group;
    best_error = error;
  }
  return best;
}

}  // namespace

void Mxfp4::encode(const float* values, std::size_t stride, std::size_t columns,
                   const float* importance, std::byte* super_block) {
  std::memset(super_block, 0, super_block_bytes(columns));
  std::byte* exponents = super_block + scales_offset(columns);
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t begin = 0; begin < columns; begin += kGroupColumns) {
      const float* weights = importance == nullptr ? nullptr : importance + begin;
      const Group group = fit(values + row * stride + begin, weights);
      exponents[begin / kGroupColumns * kPanelRows + row] = static_cast<std::byte>(group.exponent);
      for (std::size_t k = 0; k < kGroupColumns; ++k)
        put_bits(super_block[nibble_byte(row, begin + k)], group.codes[k], nibble_shift(begin + k));
    }
}

void Mxfp4::decode(const std::byte* super_block, std::size_t columns, float* values,
                   std::size_t stride) {
  const std::byte* exponents = super_block + scales_offset(columns);
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t k = 0; k < columns; ++k) {
      const std::size_t group = k / kGroupColumns;
      const int exponent = std::to_integer<int>(exponents[group * kPanelRows + row]);
      const unsigned code = get_bits(super_block[nibble_byte(row, k)], nibble_shift(k), 15);
      values[row * stride + k] = std::ldexp(static_cast<float>(kValues[code]), exponent - kBias);
    }
}

}  // namespace quern::quant
