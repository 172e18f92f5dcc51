#include "quant/int_groups.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "quant/f16_scale.hpp"
#include "quant/grouped_block.hpp"

namespace quern::quant {

namespace {

// Codes as stored: 0..15, or the bits of an int8.
template <unsigned kBits>
std::uint8_t get_code(const std::byte* super_block, std::size_t row, std::size_t column) {
  if constexpr (kBits == 4)
    return static_cast<std::uint8_t>(
        get_bits(super_block[nibble_byte(row, column)], nibble_shift(column), 15));
  else
    return std::to_integer<std::uint8_t>(super_block[byte_line_byte(row, column)]);
}
template <unsigned kBits>
void put_code(std::byte* super_block, std::size_t row, std::size_t column, int code) {
  if constexpr (kBits == 4)
    put_bits(super_block[nibble_byte(row, column)], static_cast<unsigned>(code),
             nibble_shift(column));
  else
    super_block[byte_line_byte(row, column)] = static_cast<std::byte>(static_cast<std::int8_t>(code));
}

template <bool kWide>
float get_scale(const std::byte* at) {
  if constexpr (kWide) {
    float scale;
    std::memcpy(&scale, at, 4);
    return scale;
  } else {
    base::F16 bits;
    std::memcpy(&bits, at, 2);
    return base::f16_to_float(bits);
  }
}
template <bool kWide>
void put_scale(std::byte* at, float scale) {
  if constexpr (kWide) {
    std::memcpy(at, &scale, 4);
  } else {
    const base::F16 bits = base::float_to_f16(scale);
    std::memcpy(at, &bits, 2);
  }
}

struct Fit {
  float scale = 0;
  int zero = 0;
};

// One row of one group: codes in [low, low + steps].
struct Row {
  const float* x;
  const float* weights;  // or nullptr
  std::size_t n;
  int low, steps;

  int code(float value, const Fit& fit) const {
    const float inverse = fit.scale == 0 ? 0 : 1.0F / fit.scale;
    // A scale so small that its inverse overflows makes 0 * inf of a zero.
    const float scaled = representable(value) * inverse;
    const float real = scaled == scaled ? std::clamp(scaled, -1e6F, 1e6F) : 0.0F;
    return std::clamp(static_cast<int>(round_to_even(real)) + fit.zero, low, low + steps);
  }
  double error(const Fit& fit) const {
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const double value =
          double{fit.scale} * static_cast<double>(code(x[k], fit) - fit.zero);
      const double difference = double{representable(x[k])} - value;
      sum += (weights == nullptr ? 1.0 : double{weights[k]}) * difference * difference;
    }
    return sum;
  }
};

// The range of the values shrunk a little at a time; the step that leaves the least error.
template <bool kWide>
Fit fit_row(const Row& row) {
  float low = 0, high = 0;
  for (std::size_t k = 0; k < row.n; ++k) {
    low = std::min(low, representable(row.x[k]));
    high = std::max(high, representable(row.x[k]));
  }
  Fit best{.scale = 0, .zero = row.low};
  double best_error = row.error(best);
  const float steps = static_cast<float>(row.steps);
  for (const float share : {1.0F, 0.96F, 0.92F, 0.88F, 0.84F}) {
    Fit fit;
    fit.scale = (high - low) * share / steps;
    if constexpr (!kWide) fit.scale = round_to_f16(fit.scale);
    if (!(fit.scale > 0)) break;
    fit.zero = row.low + static_cast<int>(std::clamp(
                             round_to_even(std::min(-low / fit.scale, steps)), 0.0F, steps));
    const double error = row.error(fit);
    if (!(error < best_error)) continue;
    best = fit;
    best_error = error;
  }
  return best;
}

}  // namespace

template <unsigned kBits, std::size_t kGroup, bool kWideScales>
void IntGroups<kBits, kGroup, kWideScales>::encode(const float* values, std::size_t stride,
                                                   std::size_t columns, const float* importance,
                                                   std::byte* super_block) {
  std::memset(super_block, 0, super_block_bytes(columns));
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t begin = 0; begin < columns; begin += kGroup) {
      const Row one{.x = values + row * stride + begin,
                    .weights = importance == nullptr ? nullptr : importance + begin,
                    .n = std::min(kGroup, columns - begin),
                    .low = kBits == 4 ? 0 : -128,
                    .steps = (1 << kBits) - 1};
      const Fit fit = fit_row<kWideScales>(one);
      const std::size_t place = begin / kGroup * kPanelRows + row;
      put_scale<kWideScales>(super_block + scales_offset(columns) + place * kScaleBytes, fit.scale);
      super_block[zeros_offset(columns) + place] = static_cast<std::byte>(fit.zero & 0xff);
      for (std::size_t k = 0; k < one.n; ++k)
        put_code<kBits>(super_block, row, begin + k, one.code(one.x[k], fit));
    }
}

template <unsigned kBits, std::size_t kGroup, bool kWideScales>
void IntGroups<kBits, kGroup, kWideScales>::decode(const std::byte* super_block,
                                                   std::size_t columns, float* values,
                                                   std::size_t stride) {
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t k = 0; k < columns; ++k) {
      const std::size_t place = k / kGroup * kPanelRows + row;
      const float scale =
          get_scale<kWideScales>(super_block + scales_offset(columns) + place * kScaleBytes);
      const auto zero = std::to_integer<std::uint8_t>(super_block[zeros_offset(columns) + place]);
      const std::uint8_t code = get_code<kBits>(super_block, row, k);
      const int difference = kBits == 4 ? int{code} - int{zero}
                                        : int{static_cast<std::int8_t>(code)} -
                                              int{static_cast<std::int8_t>(zero)};
      values[row * stride + k] = scale * static_cast<float>(difference);
    }
}

template struct IntGroups<4, 32, false>;
template struct IntGroups<4, 64, false>;
template struct IntGroups<4, 128, false>;
template struct IntGroups<4, 32, true>;
template struct IntGroups<8, 32, true>;
template struct IntGroups<8, 128, true>;

}  // namespace quern::quant
