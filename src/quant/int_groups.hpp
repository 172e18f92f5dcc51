// int4_g32, int4_g64, int4_g128, int4_f32, int8_g32, int8_g128: integer codes with a scale and a zero
// point per row and group of columns, as GPTQ, AWQ and compressed-tensors have them;
// value = d * (u - z), rounded once. The scale is f16 where every scale of the source is one exactly,
// else f32; int4 codes are 0..15 with zero points 0..16, int8 codes and zero points are signed.
//
// Super-block of c columns, G = c / group rounded up: four-bit lines (line l = columns 8l..8l+7: the
// low nibble of byte 4r+j is row r, column 8l+j, the high nibble column 8l+4+j) or byte lines (line
// l = columns 4l..4l+3, row r at bytes 4r..4r+3), then d[G][16], then z[G][16], one byte each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/format.hpp"

namespace quern::quant {

template <unsigned kBits, std::size_t kGroup, bool kWideScales>
struct IntGroups {
  static constexpr std::size_t kColumnStep = 32;
  static constexpr std::size_t kActivationGroup = 32;
  static constexpr bool kInteger = true;
  static constexpr bool kForeign = true;
  static constexpr bool kHasMinimum = false;
  static constexpr std::size_t kScaleColumns = kGroup;
  static constexpr unsigned kCodeBits = kBits;
  static constexpr std::size_t kScaleBytes = kWideScales ? 4 : 2;

  static constexpr std::size_t code_lines(std::size_t columns) { return columns * kBits / 32; }
  static constexpr std::size_t groups(std::size_t columns) {
    return (columns + kGroup - 1) / kGroup;
  }
  static constexpr std::size_t scales_offset(std::size_t columns) {
    return code_lines(columns) * kLineBytes;
  }
  static constexpr std::size_t zeros_offset(std::size_t columns) {
    return scales_offset(columns) + groups(columns) * kPanelRows * kScaleBytes;
  }
  static constexpr std::size_t super_block_bytes(std::size_t columns) {
    return zeros_offset(columns) + groups(columns) * kPanelRows;
  }

  // Kernels: use(i, line) for the eight lines (columns 4i..4i+3) of 32 columns, in operand form.
  static constexpr bool kUnsignedCodes = kBits == 4;
  static constexpr std::int32_t kLargestOperand = 15;
  static constexpr std::int32_t kZero = 0;  // zero points come from zero_points()
  template <class P, class Use>
  [[gnu::always_inline]] static void for_each_line(const std::byte* super_block, std::size_t,
                                                   std::size_t group, Use use) {
    if constexpr (kBits == 4) {
      for (std::size_t i = 0; i < 4; ++i) {
        const typename P::Line packed = P::load_line(super_block + (4 * group + i) * kLineBytes);
        use(2 * i, P::low_nibbles(packed));
        use(2 * i + 1, P::high_nibbles(packed));
      }
    } else {
      for (std::size_t i = 0; i < 8; ++i)
        use(i, P::bias_line(P::load_line(super_block + (8 * group + i) * kLineBytes)));
    }
  }
  template <class P>
  [[gnu::always_inline]] static typename P::V16 scales(const std::byte* super_block,
                                                       std::size_t columns, std::size_t group) {
    const std::byte* at = super_block + scales_offset(columns) +
                          group * kGroupColumns / kGroup * kPanelRows * kScaleBytes;
    if constexpr (kWideScales)
      return P::load(reinterpret_cast<const float*>(at));
    else
      return P::load_f16(reinterpret_cast<const std::uint16_t*>(at));
  }
  // What the operands hold beyond u - z, per row.
  static constexpr bool kHasZeroPoints = true;
  template <class P>
  [[gnu::always_inline]] static typename P::I16 zero_points(const std::byte* super_block,
                                                            std::size_t columns,
                                                            std::size_t group) {
    const std::byte* at = super_block + zeros_offset(columns) +
                          group * kGroupColumns / kGroup * kPanelRows;
    if constexpr (kBits == 4)
      return P::load_u8(reinterpret_cast<const std::uint8_t*>(at));
    else
      return P::iadd(P::load_i8(reinterpret_cast<const std::int8_t*>(at)), P::iset(P::kBias));
  }

  // See FormatTraits (format.hpp).
  static void encode(const float* values, std::size_t stride, std::size_t columns,
                     const float* importance, std::byte* super_block);
  static void decode(const std::byte* super_block, std::size_t columns, float* values,
                     std::size_t stride);
};

struct Int4G32 : IntGroups<4, 32, false> {
  static constexpr FormatId kId = FormatId::int4_g32;
  static constexpr std::string_view kName = "int4_g32";
};
struct Int4G64 : IntGroups<4, 64, false> {
  static constexpr FormatId kId = FormatId::int4_g64;
  static constexpr std::string_view kName = "int4_g64";
};
struct Int4G128 : IntGroups<4, 128, false> {
  static constexpr FormatId kId = FormatId::int4_g128;
  static constexpr std::string_view kName = "int4_g128";
};
struct Int4F32 : IntGroups<4, 32, true> {
  static constexpr FormatId kId = FormatId::int4_f32;
  static constexpr std::string_view kName = "int4_f32";
};
struct Int8G32 : IntGroups<8, 32, true> {
  static constexpr FormatId kId = FormatId::int8_g32;
  static constexpr std::string_view kName = "int8_g32";
};
struct Int8G128 : IntGroups<8, 128, true> {
  static constexpr FormatId kId = FormatId::int8_g128;
  static constexpr std::string_view kName = "int8_g128";
};

}  // namespace quern::quant
