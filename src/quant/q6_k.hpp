// q6_k: the codes and scales of GGUF Q6_K, rearranged; value = (d * scale) * (u - 32), an int8 scale per
// row and 16 columns, f16 d per row and 256 columns. 6.5625 bits a weight. Its activations have a scale
// per 16 columns too, so that a float scale holds for a whole group of both.
//
// Super-block of S = columns / 16: 2S four-bit lines (the low four bits of the codes; line l = columns
// 8l..8l+7: the low nibble of byte 4r+j is row r, column 8l+j, the high nibble column 8l+4+j), then S
// lines of high bits (line s = columns 16s..16s+15: bits 2i and 2i+1 of byte 4r+j are the high bits of
// row r, column 16s+4i+j), then i8 scale[S][16], then f16 d[16].
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/format.hpp"

namespace quern::quant {

struct Q6_K {
  static constexpr FormatId kId = FormatId::q6_k;
  static constexpr std::string_view kName = "q6_k";
  static constexpr std::size_t kColumnStep = 32;
  static constexpr std::size_t kActivationGroup = 16;
  static constexpr bool kInteger = true;
  static constexpr bool kForeign = true;
  static constexpr bool kHasMinimum = false;
  static constexpr std::size_t kScaleColumns = 16;

  static constexpr std::size_t code_lines(std::size_t columns) { return columns / 8; }
  static constexpr std::size_t high_lines_offset(std::size_t columns) {
    return code_lines(columns) * kLineBytes;
  }
  static constexpr std::size_t scales_offset(std::size_t columns) {
    return high_lines_offset(columns) + columns / kScaleColumns * kLineBytes;
  }
  static constexpr std::size_t d_offset(std::size_t columns) {
    return scales_offset(columns) + columns / kScaleColumns * kPanelRows;
  }
  static constexpr std::size_t super_block_bytes(std::size_t columns) {
    return d_offset(columns) + kPanelRows * 2;
  }

  // Kernels: use(i, line) for the four lines (columns 4i..4i+3) of 16 columns, in operand form.
  static constexpr bool kUnsignedCodes = true;  // operands are code + kZero in [0, 63]
  static constexpr std::int32_t kLargestOperand = 63;
  static constexpr std::int32_t kZero = 32;
  template <class P, class Use>
  [[gnu::always_inline]] static void for_each_line(const std::byte* super_block,
                                                   std::size_t columns, std::size_t group,
                                                   Use use) {
    const typename P::Line high =
        P::load_line(super_block + high_lines_offset(columns) + group * kLineBytes);
    const typename P::Line first = P::load_line(super_block + 2 * group * kLineBytes);
    const typename P::Line second = P::load_line(super_block + (2 * group + 1) * kLineBytes);
    use(0, P::or_line(P::low_nibbles(first), P::template bit_pair<0>(high)));
    use(1, P::or_line(P::high_nibbles(first), P::template bit_pair<1>(high)));
    use(2, P::or_line(P::low_nibbles(second), P::template bit_pair<2>(high)));
    use(3, P::or_line(P::high_nibbles(second), P::template bit_pair<3>(high)));
  }
  template <class P>
  [[gnu::always_inline]] static typename P::V16 scales(const std::byte* super_block,
                                                       std::size_t columns, std::size_t group) {
    const auto* scale = reinterpret_cast<const std::int8_t*>(super_block + scales_offset(columns));
    const auto* d = reinterpret_cast<const std::uint16_t*>(super_block + d_offset(columns));
    return P::mul(P::load_f16(d), P::to_float(P::load_i8(scale + group * kPanelRows)));
  }

  // See FormatTraits (format.hpp).
  static void encode(const float* values, std::size_t stride, std::size_t columns,
                     const float* importance, std::byte* super_block);
  static void decode(const std::byte* super_block, std::size_t columns, float* values,
                     std::size_t stride);
};

}  // namespace quern::quant
