// q5_1: the codes, scales and minima of GGUF Q5_1, rearranged; value = d * u + m, f16 d and m per
// row and 32 columns. 6 bits a weight.
//
// Super-block of G = columns / 32 groups: 4G four-bit lines (line l = columns 8l..8l+7: the low
// nibble of byte 4r+j is row r, column 8l+j, the high nibble column 8l+4+j), then for each line two
// u64 (bit i of the first: fifth bit of the low nibble of byte i; of the second: of the high
// nibble), then f16 d[G][16], then f16 m[G][16].
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/format.hpp"

namespace quern::quant {

struct Q5_1 {
  static constexpr FormatId kId = FormatId::q5_1;
  static constexpr std::string_view kName = "q5_1";
  static constexpr std::size_t kColumnStep = 32;
  static constexpr std::size_t kActivationGroup = 32;
  static constexpr bool kInteger = true;
  static constexpr bool kForeign = true;
  static constexpr bool kHasMinimum = true;

  static constexpr std::size_t code_lines(std::size_t columns) { return columns / 8; }
  // Per line two u64: the fifth bits of the low nibbles of bytes 0..63, then of the high nibbles.
  static constexpr std::size_t high_bits_offset(std::size_t columns) {
    return code_lines(columns) * kLineBytes;
  }
  static constexpr std::size_t scales_offset(std::size_t columns) {
    return high_bits_offset(columns) + code_lines(columns) * 16;
  }
  static constexpr std::size_t minima_offset(std::size_t columns) {
    return scales_offset(columns) + columns / kGroupColumns * kPanelRows * 2;
  }
  static constexpr std::size_t super_block_bytes(std::size_t columns) {
    return minima_offset(columns) + columns / kGroupColumns * kPanelRows * 2;
  }

  // Kernels: use(i, line) for the eight lines (columns 4i..4i+3) of 32 columns, in operand form.
  static constexpr bool kUnsignedCodes = true;  // operands are code + kZero
  static constexpr std::int32_t kLargestOperand = 31;
  static constexpr std::int32_t kZero = 0;
  template <class P, class Use>
  [[gnu::always_inline]] static void for_each_line(const std::byte* super_block,
                                                   std::size_t columns, std::size_t group,
                                                   Use use) {
    const std::byte* bits = super_block + high_bits_offset(columns) + group * 64;
    for (std::size_t i = 0; i < 4; ++i) {
      const typename P::Line packed = P::load_line(super_block + (4 * group + i) * kLineBytes);
      use(2 * i, P::or_line(P::low_nibbles(packed), P::bit_line(bits + 16 * i, 16)));
      use(2 * i + 1, P::or_line(P::high_nibbles(packed), P::bit_line(bits + 16 * i + 8, 16)));
    }
  }
  template <class P>
  [[gnu::always_inline]] static typename P::V16 scales(const std::byte* super_block,
                                                       std::size_t columns, std::size_t group) {
    return P::load_f16(
        reinterpret_cast<const std::uint16_t*>(super_block + scales_offset(columns)) +
        group * kPanelRows);
  }
  template <class P>
  [[gnu::always_inline]] static typename P::V16 minima(const std::byte* super_block,
                                                       std::size_t columns, std::size_t group) {
    return P::load_f16(
        reinterpret_cast<const std::uint16_t*>(super_block + minima_offset(columns)) +
        group * kPanelRows);
  }

  // See FormatTraits (format.hpp).
  static void encode(const float* values, std::size_t stride, std::size_t columns,
                     const float* importance, std::byte* super_block);
  static void decode(const std::byte* super_block, std::size_t columns, float* values,
                     std::size_t stride);
  static void decode_row(const std::byte* super_block, std::size_t columns, std::size_t row, float* values);
};

}  // namespace quern::quant
