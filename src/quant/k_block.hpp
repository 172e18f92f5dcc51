// Super-blocks of q4_k and q5_k taken apart: one code a byte, scales and minima as small integers.
// Encoding, decoding and packing of GGUF blocks go through it. For the .cpp files of this folder only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "quant/f16_scale.hpp"
#include "quant/grouped_block.hpp"
#include "quant/k_scales.hpp"

namespace quern::quant {

inline constexpr float kLargestKScale = 63;  // the largest scale and minimum

struct KBlock {
  static constexpr std::size_t kGroups = kSuperColumns / kGroupColumns;
  std::uint8_t codes[kPanelRows][kSuperColumns] = {};
  std::uint8_t scales[kGroups][kPanelRows] = {};
  std::uint8_t minima[kGroups][kPanelRows] = {};
  base::F16 d[kPanelRows] = {};
  base::F16 dmin[kPanelRows] = {};
};

template <class F>
void store_k(const KBlock& block, std::size_t columns, std::byte* out) {
  const std::size_t groups = columns / kGroupColumns;
  std::memset(out, 0, F::super_block_bytes(columns));
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t k = 0; k < columns; ++k) {
      put_bits(out[nibble_byte(row, k)], block.codes[row][k] & 15u, nibble_shift(k));
      if constexpr (kHasHighBits<F>)
        put_bits(out[F::high_bits_offset(columns) + high_bit_byte(row, k)],
                 block.codes[row][k] >> 4, high_bit_shift(row, k));
    }
  std::byte* at = out + F::scales_offset(columns);
  for (std::size_t g = 0; g < groups; ++g)
    for (std::size_t row = 0; row < kPanelRows; ++row) {
      const unsigned scale = block.scales[g][row], minimum = block.minima[g][row];
      at[g * kPanelRows + row] = static_cast<std::byte>((scale & 15u) | (minimum & 15u) << 4);
      put_bits(at[KScales::high_offset(groups) + g / 2 * kPanelRows + row],
               scale >> 4 | minimum >> 4 << 2, g % 2 == 0 ? 0 : 4);
    }
  std::memcpy(at + KScales::d_offset(groups), block.d, sizeof block.d);
  std::memcpy(at + KScales::dmin_offset(groups), block.dmin, sizeof block.dmin);
}

template <class F>
void load_k(const std::byte* in, std::size_t columns, KBlock& block) {
  const std::size_t groups = columns / kGroupColumns;
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t k = 0; k < columns; ++k) {
      unsigned code = get_bits(in[nibble_byte(row, k)], nibble_shift(k), 15);
      if constexpr (kHasHighBits<F>)
        code |= get_bits(in[F::high_bits_offset(columns) + high_bit_byte(row, k)],
                         high_bit_shift(row, k), 1)
                << 4;
      block.codes[row][k] = static_cast<std::uint8_t>(code);
    }
  const std::byte* at = in + F::scales_offset(columns);
  for (std::size_t g = 0; g < groups; ++g)
    for (std::size_t row = 0; row < kPanelRows; ++row) {
      const std::byte low = at[g * kPanelRows + row];
      const unsigned high = get_bits(at[KScales::high_offset(groups) + g / 2 * kPanelRows + row],
                                     g % 2 == 0 ? 0 : 4, 15);
      block.scales[g][row] = static_cast<std::uint8_t>(get_bits(low, 0, 15) | (high & 3u) << 4);
      block.minima[g][row] = static_cast<std::uint8_t>(get_bits(low, 4, 15) | high >> 2 << 4);
    }
  std::memcpy(block.d, at + KScales::d_offset(groups), sizeof block.d);
  std::memcpy(block.dmin, at + KScales::dmin_offset(groups), sizeof block.dmin);
}

template <class F>
void decode_k(const std::byte* super_block, std::size_t columns, float* values, std::size_t stride) {
  KBlock block;
  load_k<F>(super_block, columns, block);
  for (std::size_t row = 0; row < kPanelRows; ++row) {
    const float d = base::f16_to_float(block.d[row]), dmin = base::f16_to_float(block.dmin[row]);
    for (std::size_t k = 0; k < columns; ++k) {
      const std::size_t g = k / kGroupColumns;
      const float scale = d * static_cast<float>(block.scales[g][row]);
      const float minimum = dmin * static_cast<float>(block.minima[g][row]);
      values[row * stride + k] = scale * static_cast<float>(block.codes[row][k]) - minimum;
    }
  }
}

// One row: ranges of the groups, then scales and minima as multiples of d and dmin, then codes.
inline void encode_k_row(const float* values, std::size_t columns, std::size_t row, int largest,
                         KBlock& block) {
  const std::size_t groups = columns / kGroupColumns;
  float scales[KBlock::kGroups] = {}, minima[KBlock::kGroups] = {};
  for (std::size_t g = 0; g < groups; ++g) {
    float low = 0, high = 0;
    for (std::size_t k = 0; k < kGroupColumns; ++k) {
      const float x = representable(values[g * kGroupColumns + k]);
      low = std::min(low, x);
      high = std::max(high, x);
    }
    scales[g] = (high - low) / static_cast<float>(largest);
    minima[g] = -low;
  }
  block.d[row] = to_f16_saturated(*std::max_element(scales, scales + groups) / kLargestKScale);
  block.dmin[row] = to_f16_saturated(*std::max_element(minima, minima + groups) / kLargestKScale);
  const float d = base::f16_to_float(block.d[row]), dmin = base::f16_to_float(block.dmin[row]);
  const auto steps_of = [](float value, float step) {
    const float steps = step > 0 ? std::min(value / step, kLargestKScale) : 0;
    return std::clamp(round_to_even(steps), 0.0F, kLargestKScale);
  };
  for (std::size_t g = 0; g < groups; ++g) {
    const float scale_steps = steps_of(scales[g], d), minimum_steps = steps_of(minima[g], dmin);
    block.scales[g][row] = static_cast<std::uint8_t>(scale_steps);
    block.minima[g][row] = static_cast<std::uint8_t>(minimum_steps);
    const float scale = d * scale_steps, minimum = dmin * minimum_steps;
    for (std::size_t k = 0; k < kGroupColumns; ++k) {
      const float x = representable(values[g * kGroupColumns + k]) + minimum;
      const float real = scale > 0 ? std::clamp(x / scale, 0.0F, static_cast<float>(largest)) : 0;
      block.codes[row][g * kGroupColumns + k] = static_cast<std::uint8_t>(round_to_even(real));
    }
  }
}

template <class F>
void encode_k(const float* values, std::size_t stride, std::size_t columns, std::byte* super_block,
              int largest) {
  KBlock block;
  for (std::size_t row = 0; row < kPanelRows; ++row)
    encode_k_row(values + row * stride, columns, row, largest, block);
  store_k<F>(block, columns, super_block);
}

}  // namespace quern::quant
