// mxfp4: codes and scales of MXFP4 (OCP), of Hugging Face's blocks and GGUF's type 39, rearranged;
// value = T[u] * 2^(e - 128), T the 4-bit float values doubled, a power of two per row and 32 columns.
// 4.25 bits a weight.
//
// Super-block of G = columns / 32 groups: 4G four-bit lines (line l = columns 8l..8l+7: the low
// nibble of byte 4r+j is row r, column 8l+j, the high nibble column 8l+4+j), then u8 e[G][16].
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/format.hpp"

namespace quern::quant {

struct Mxfp4 {
  static constexpr FormatId kId = FormatId::mxfp4;
  static constexpr std::string_view kName = "mxfp4";
  static constexpr std::size_t kColumnStep = 32;
  static constexpr std::size_t kActivationGroup = 32;
  static constexpr bool kInteger = true;
  static constexpr bool kForeign = true;
  static constexpr bool kHasMinimum = false;

  static constexpr std::size_t code_lines(std::size_t columns) { return columns / 8; }
  static constexpr std::size_t scales_offset(std::size_t columns) {
    return code_lines(columns) * kLineBytes;
  }
  static constexpr std::size_t super_block_bytes(std::size_t columns) {
    return scales_offset(columns) + columns / kGroupColumns * kPanelRows;
  }
  static constexpr std::int8_t kValues[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                              0, -1, -2, -3, -4, -6, -8, -12};
  static constexpr int kBias = 128;  // scale = 2^(e - kBias)

  // Kernels: use(i, line) for the eight lines (columns 4i..4i+3) of 32 columns, in operand form.
  static constexpr bool kUnsignedCodes = true;  // operands are value + kZero in [0, 24]
  static constexpr std::int32_t kLargestOperand = 24;
  static constexpr std::int32_t kZero = 12;
  template <class P>
  struct Tables {
    alignas(16) std::int8_t operands[16];
    static constexpr Tables make() {
      Tables t{};
      for (unsigned u = 0; u < 16; ++u) t.operands[u] = static_cast<std::int8_t>(kValues[u] + kZero);
      return t;
    }
  };
  template <class P>
  static constexpr Tables<P> kTables = Tables<P>::make();
  template <class P, class Use>
  [[gnu::always_inline]] static void for_each_line(const std::byte* super_block, std::size_t,
                                                   std::size_t group, Use use) {
    constexpr const Tables<P>& t = kTables<P>;
    for (std::size_t i = 0; i < 4; ++i) {
      const typename P::Line packed = P::load_line(super_block + (4 * group + i) * kLineBytes);
      use(2 * i, P::lookup16(t.operands, P::low_nibbles(packed)));
      use(2 * i + 1, P::lookup16(t.operands, P::high_nibbles(packed)));
    }
  }
  // 2^(e - 128) reaches below the normal floats: the product of two halves of the exponent.
  template <class P>
  [[gnu::always_inline]] static typename P::V16 scales(const std::byte* super_block,
                                                       std::size_t columns, std::size_t group) {
    const auto* e = reinterpret_cast<const std::uint8_t*>(super_block + scales_offset(columns)) +
                    group * kPanelRows;
    const typename P::I16 all = P::load_u8(e);
    const typename P::I16 half = P::template shift_right<1>(all);
    const typename P::I16 other = P::iadd(half, P::iand(all, P::iset(1)));
    const typename P::I16 bias = P::iset(-kBias / 2);
    return P::mul(P::exp2i(P::iadd(half, bias)), P::exp2i(P::iadd(other, bias)));
  }

  // See FormatTraits (format.hpp).
  static void encode(const float* values, std::size_t stride, std::size_t columns,
                     const float* importance, std::byte* super_block);
  static void decode(const std::byte* super_block, std::size_t columns, float* values,
                     std::size_t stride);
};

}  // namespace quern::quant
