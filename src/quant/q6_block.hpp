// A super-block of q6_k taken apart: one code a byte. For the .cpp files of this folder only.
#pragma once

#include <cstdint>
#include <cstring>

#include "quant/grouped_block.hpp"
#include "quant/q6_k.hpp"

namespace quern::quant {

struct Q6Block {
  static constexpr std::size_t kGroups = kSuperColumns / Q6_K::kScaleColumns;
  std::uint8_t codes[kPanelRows][kSuperColumns] = {};
  std::int8_t scales[kGroups][kPanelRows] = {};
  base::F16 d[kPanelRows] = {};
};

inline std::size_t bit_pair_byte(std::size_t row, std::size_t column) {
  return column / 16 * kLineBytes + row * 4 + column % 4;
}
inline unsigned bit_pair_shift(std::size_t column) {
  return static_cast<unsigned>(column % 16 / 4 * 2);
}

inline void store_q6(const Q6Block& block, std::size_t columns, std::byte* out) {
  std::memset(out, 0, Q6_K::super_block_bytes(columns));
  std::byte* high = out + Q6_K::high_lines_offset(columns);
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t k = 0; k < columns; ++k) {
      const unsigned code = block.codes[row][k];
      put_bits(out[nibble_byte(row, k)], code & 15u, nibble_shift(k));
      put_bits(high[bit_pair_byte(row, k)], code >> 4, bit_pair_shift(k));
    }
  std::memcpy(out + Q6_K::scales_offset(columns), block.scales,
              columns / Q6_K::kScaleColumns * kPanelRows);
  std::memcpy(out + Q6_K::d_offset(columns), block.d, sizeof block.d);
}

inline void load_q6(const std::byte* in, std::size_t columns, Q6Block& block) {
  const std::byte* high = in + Q6_K::high_lines_offset(columns);
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t k = 0; k < columns; ++k)
      block.codes[row][k] = static_cast<std::uint8_t>(
          get_bits(in[nibble_byte(row, k)], nibble_shift(k), 15) |
          get_bits(high[bit_pair_byte(row, k)], bit_pair_shift(k), 3) << 4);
  std::memcpy(block.scales, in + Q6_K::scales_offset(columns),
              columns / Q6_K::kScaleColumns * kPanelRows);
  std::memcpy(block.d, in + Q6_K::d_offset(columns), sizeof block.d);
}

}  // namespace quern::quant
