// f32, N16K1: line k holds column k of 16 rows as floats. Exact; the format of parity checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/format.hpp"

namespace quern::quant {

struct F32 {
  static constexpr FormatId kId = FormatId::f32;
  static constexpr std::string_view kName = "f32";
  static constexpr std::size_t kColumnStep = 1;
  static constexpr std::size_t kActivationGroup = 0;
  static constexpr bool kInteger = false;
  static constexpr bool kForeign = false;
  static constexpr bool kHasMinimum = false;

  static constexpr std::size_t super_block_bytes(std::size_t columns) {
    return columns * kLineBytes;
  }

  // Kernels: the kColumnStep columns of one line.
  template <class P>
  [[gnu::always_inline]] static void load(const std::byte* line, typename P::V16 (&w)[1]) {
    w[0] = P::load(reinterpret_cast<const float*>(line));
  }

  // See FormatTraits (format.hpp).
  static void encode(const float* values, std::size_t stride, std::size_t columns,
                     const float* importance, std::byte* super_block);
  static void decode(const std::byte* super_block, std::size_t columns, float* values,
                     std::size_t stride);
};

}  // namespace quern::quant
