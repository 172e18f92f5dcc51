// q8: int8 codes in [-128, 127], one f16 scale per row and 32 columns; value = d * code. 8.5 bits a
// weight. Encoding uses [-127, 127]; -128 occurs only in a kept GGUF Q8_0, which this format holds
// exactly.
//
// Super-block of G = columns / 32 groups: 8G lines of codes (line l = columns 4l..4l+3, row r at
// bytes 4r..4r+3), then f16 d[G][16].
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/format.hpp"

namespace quern::quant {

struct Q8 {
  static constexpr FormatId kId = FormatId::q8;
  static constexpr std::string_view kName = "q8";
  static constexpr std::size_t kColumnStep = 32;
  static constexpr std::size_t kActivationGroup = 32;
  static constexpr bool kInteger = true;
  static constexpr bool kForeign = false;
  static constexpr bool kHasMinimum = false;

  static constexpr std::size_t code_lines(std::size_t columns) { return columns / 4; }
  static constexpr std::size_t scales_offset(std::size_t columns) {
    return code_lines(columns) * kLineBytes;
  }
  static constexpr std::size_t super_block_bytes(std::size_t columns) {
    return scales_offset(columns) + columns / kGroupColumns * kPanelRows * 2;
  }

  // Kernels: use(i, line) for the eight lines (columns 4i..4i+3) of 32 columns, in operand form.
  static constexpr bool kUnsignedCodes = false;  // operands are code + P::kBias
  static constexpr std::int32_t kZero = 0;
  template <class P, class Use>
  [[gnu::always_inline]] static void for_each_line(const std::byte* super_block, std::size_t,
                                                   std::size_t group, Use use) {
    for (std::size_t i = 0; i < 8; ++i)
      use(i, P::bias_line(P::load_line(super_block + (8 * group + i) * kLineBytes)));
  }
  template <class P>
  [[gnu::always_inline]] static typename P::V16 scales(const std::byte* super_block,
                                                       std::size_t columns, std::size_t group) {
    return P::load_f16(
        reinterpret_cast<const std::uint16_t*>(super_block + scales_offset(columns)) +
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
