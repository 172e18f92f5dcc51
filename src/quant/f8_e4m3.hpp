// f8_e4m3: 8-bit floats (4 exponent, 3 mantissa bits, largest 448, no infinity) with an f32 scale per
// row and 128 columns, as FP8 checkpoints have them; value = scale * code, rounded once. A float format:
// activations stay float. 8.25 bits a weight.
//
// Super-block: columns lines of 16 bytes (line k = column k, byte r = row r), then f32 scale[G][16] with
// G = columns / 128 rounded up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/format.hpp"

namespace quern::quant {

struct F8E4M3 {
  static constexpr FormatId kId = FormatId::f8_e4m3;
  static constexpr std::string_view kName = "f8_e4m3";
  static constexpr std::size_t kColumnStep = 4;
  static constexpr std::size_t kActivationGroup = 0;
  static constexpr bool kInteger = false;
  static constexpr bool kForeign = true;
  static constexpr bool kHasMinimum = false;
  static constexpr std::size_t kScaleColumns = 128;

  static constexpr std::size_t scales_offset(std::size_t columns) { return columns * kPanelRows; }
  static constexpr std::size_t super_block_bytes(std::size_t columns) {
    return scales_offset(columns) +
           (columns + kScaleColumns - 1) / kScaleColumns * kPanelRows * sizeof(float);
  }

  // Kernels: columns k .. k + 3 of a super-block, k a multiple of 4.
  static constexpr bool kScaled = true;
  template <class P>
  [[gnu::always_inline]] static void load(const std::byte* super_block, std::size_t columns,
                                          std::size_t k, typename P::V16 (&w)[4]) {
    const typename P::V16 scale =
        P::load(reinterpret_cast<const float*>(super_block + scales_offset(columns)) +
                k / kScaleColumns * kPanelRows);
    const auto* codes = reinterpret_cast<const std::uint8_t*>(super_block + k * kPanelRows);
    for (std::size_t j = 0; j < 4; ++j)
      w[j] = P::mul(P::load_e4m3(codes + j * kPanelRows), scale);
  }

  // See FormatTraits (format.hpp).
  static void encode(const float* values, std::size_t stride, std::size_t columns,
                     const float* importance, std::byte* super_block);
  static void decode(const std::byte* super_block, std::size_t columns, float* values,
                     std::size_t stride);
};

}  // namespace quern::quant
