// A super-block of the formats with an f16 scale (and minimum) per row and 32 columns, taken apart:
// one code a byte. Encoding, decoding and packing of foreign blocks all go through it.
// For the .cpp files of this folder only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/small_float.hpp"
#include "quant/format.hpp"

namespace quern::quant {

struct GroupedBlock {
  static constexpr std::size_t kGroups = kSuperColumns / kGroupColumns;
  std::uint8_t codes[kPanelRows][kSuperColumns];  // q8: the bits of the int8
  base::F16 scales[kGroups][kPanelRows];
  base::F16 minima[kGroups][kPanelRows];
};

// Where the 4-bit code of (row, column) lies in the code lines.
inline std::size_t nibble_byte(std::size_t row, std::size_t column) {
  return column / 8 * kLineBytes + row * 4 + column % 4;
}
inline unsigned nibble_shift(std::size_t column) {
  return column % 8 < 4 ? 0 : 4;
}
// Where an 8-bit code lies.
inline std::size_t byte_line_byte(std::size_t row, std::size_t column) {
  return column / 4 * kLineBytes + row * 4 + column % 4;
}

// Where its fifth bit lies: byte of the high-bit area and bit in that byte (u64 little-endian).
inline std::size_t high_bit_byte(std::size_t row, std::size_t column) {
  return column / 8 * 16 + (column % 8 < 4 ? 0U : 8U) + row / 2;
}
inline unsigned high_bit_shift(std::size_t row, std::size_t column) {
  return static_cast<unsigned>(row % 2 * 4 + column % 4);
}

inline void put_bits(std::byte& target, unsigned bits, unsigned shift) {
  target |= static_cast<std::byte>(bits << shift);
}
inline unsigned get_bits(std::byte source, unsigned shift, unsigned mask) {
  return std::to_integer<unsigned>(source) >> shift & mask;
}

template <class F>
inline constexpr bool kHasHighBits = requires {
  F::high_bits_offset(std::size_t{});
};

template <class F>
void store_block(const GroupedBlock& block, std::size_t columns, std::byte* out) {
  const std::size_t groups = columns / kGroupColumns;
  std::memset(out, 0, F::super_block_bytes(columns));
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t k = 0; k < columns; ++k) {
      const unsigned code = block.codes[row][k];
      put_bits(out[nibble_byte(row, k)], code & 15, nibble_shift(k));
      if constexpr (kHasHighBits<F>)
        put_bits(out[F::high_bits_offset(columns) + high_bit_byte(row, k)], code >> 4,
                 high_bit_shift(row, k));
    }
  std::memcpy(out + F::scales_offset(columns), block.scales, groups * sizeof block.scales[0]);
  if constexpr (F::kHasMinimum)
    std::memcpy(out + F::minima_offset(columns), block.minima, groups * sizeof block.minima[0]);
}

template <class F>
unsigned load_code(const std::byte* in, std::size_t columns, std::size_t row, std::size_t k) {
  unsigned code = get_bits(in[nibble_byte(row, k)], nibble_shift(k), 15);
  if constexpr (kHasHighBits<F>)
    code |= get_bits(in[F::high_bits_offset(columns) + high_bit_byte(row, k)], high_bit_shift(row, k), 1) << 4;
  return code;
}

}  // namespace quern::quant
