// Primitives of the AArch64 path with matrix products of bytes (Armv8.6 I8MM: Neoverse V1 and later, Apple
// M2): the lanes of neon.hpp, and smmla as a matrix unit for products of many tokens. One smmla multiplies
// two tokens by two rows over eight columns, twice the products of an sdot.
#pragma once

#include "kernels/primitives/neon.hpp"
#include "quant/format.hpp"

namespace quern::kernels {

// The matrix unit as ops/matmul_integer.hpp uses it (amx_tiles.hpp).
struct SmmlaTiles {
  static constexpr std::size_t kTokens = 4;
  static constexpr std::size_t kPanels = 1;
  static constexpr std::size_t step_of(std::size_t, std::size_t) { return 2; }  // lines: eight columns
  static void configure(std::size_t) {}
  static void release() {}

  // Half a panel at a time: 4 tokens by 8 rows are eight registers of sums.
  template <bool kUnsigned, std::size_t kPanelCount>
  [[gnu::always_inline]] static void multiply(const std::int8_t* codes, std::size_t codes_stride,
                                              const std::byte* const (&lines)[kPanelCount],
                                              std::size_t n_lines, std::size_t, std::int32_t* out) {
    static_assert(kPanelCount == kPanels);  // unsigned lines hold at most 127: the same as signed ones
    for (int half = 0; half < 2; ++half)
      half_panel(codes, codes_stride, lines[0] + 32 * half, n_lines, out + 8 * half);
  }

 private:
  [[gnu::always_inline]] static void half_panel(const std::int8_t* codes, std::size_t stride,
                                                const std::byte* lines, std::size_t n_lines,
                                                std::int32_t* out) {
    int32x4_t sums[2][4];  // [pair of tokens][pair of rows]: token 0 rows 0, 1; token 1 rows 0, 1
    for (auto& pair : sums)
      for (int32x4_t& sum : pair) sum = vdupq_n_s32(0);
    for (std::size_t line = 0; line < n_lines; line += 2) {
      const std::int8_t* w = reinterpret_cast<const std::int8_t*>(lines) + line * quant::kLineBytes;
      int8x16_t rows[4];  // two rows of eight columns each
      for (int i = 0; i < 2; ++i) {
        const int32x4_t first = vreinterpretq_s32_s8(vld1q_s8(w + 16 * i));
        const int32x4_t second = vreinterpretq_s32_s8(vld1q_s8(w + quant::kLineBytes + 16 * i));
        rows[2 * i] = vreinterpretq_s8_s32(vzip1q_s32(first, second));
        rows[2 * i + 1] = vreinterpretq_s8_s32(vzip2q_s32(first, second));
      }
      for (std::size_t pair = 0; pair < 2; ++pair) {
        const std::int8_t* a = codes + 2 * pair * stride + 4 * line;
        const int8x16_t tokens = vcombine_s8(vld1_s8(a), vld1_s8(a + stride));
        for (int i = 0; i < 4; ++i) sums[pair][i] = vmmlaq_s32(sums[pair][i], tokens, rows[i]);
      }
    }
    for (std::size_t pair = 0; pair < 2; ++pair)
      for (std::size_t i = 0; i < 4; ++i) {
        std::int32_t* to = out + 2 * pair * quant::kPanelRows + 2 * i;
        vst1_s32(to, vget_low_s32(sums[pair][i]));
        vst1_s32(to + quant::kPanelRows, vget_high_s32(sums[pair][i]));
      }
  }
};

struct NeonI8mm : Neon {
  static constexpr const char* kName = "neon_i8mm";
  static constexpr const char* kDescription =
      "AArch64 with DotProd and I8MM; byte products through sdot, of many tokens through smmla";
  using Tiles = SmmlaTiles;
};

}  // namespace quern::kernels
