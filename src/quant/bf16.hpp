// bf16, N16K2: line l holds columns 2l and 2l+1 of 16 rows (row r at bytes 4r..4r+3), the pair
// order of the bf16 dot products. Rounded to nearest even.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/format.hpp"

namespace quern::quant {

struct Bf16 {
  static constexpr FormatId kId = FormatId::bf16;
  static constexpr std::string_view kName = "bf16";
  static constexpr std::size_t kColumnStep = 2;
  static constexpr std::size_t kActivationGroup = 0;
  static constexpr bool kInteger = false;
  static constexpr bool kForeign = false;
  static constexpr bool kHasMinimum = false;

  static constexpr std::size_t super_block_bytes(std::size_t columns) {
    return columns / 2 * kLineBytes;
  }

  // Kernels: the kColumnStep columns of one line.
  template <class P>
  [[gnu::always_inline]] static void load(const std::byte* line, typename P::V16 (&w)[2]) {
    P::load_bf16_pairs(reinterpret_cast<const std::uint16_t*>(line), w[0], w[1]);
  }

  // See FormatTraits (format.hpp).
  static void encode(const float* values, std::size_t stride, std::size_t columns,
                     const float* importance, std::byte* super_block);
  static void decode(const std::byte* super_block, std::size_t columns, float* values,
                     std::size_t stride);
};

}  // namespace quern::quant
