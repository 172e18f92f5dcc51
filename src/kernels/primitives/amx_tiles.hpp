// A matrix unit of eight tiles as integer products use it (ops/matmul_integer.hpp): AMX, whose tiles are up
// to 16 rows of 64 bytes. A tile of activations is 16 tokens by 64 codes, read where they lie; a tile of
// weights is 16 operand lines (16 rows by 4 columns each), read where they lie too, for a line is just what
// AMX calls a row of its second operand; a product of the two is 16 tokens by 16 rows of int32.
// `Unit` is the instructions; tests put an exact software tile in its place (tests/kernels/emulated).
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/format.hpp"

namespace quern::kernels {

inline constexpr std::size_t kTileRows = 16;

// What LDTILECFG reads (palette 1).
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

template <class Unit>
struct MatrixTiles {
  static constexpr std::size_t kTokens = 2 * kTileRows;  // of one multiply(): two tiles of activations
  static constexpr std::size_t kPanels = 2;              // at most: two tiles of weights, four of sums

  // Lines that one tile of weights holds, so that it divides each of the group lengths.
  static constexpr std::size_t step_of(std::size_t group_lines, std::size_t lines) {
    for (std::size_t step = kTileRows; step > 1; step /= 2)
      if (group_lines % step == 0 && lines % step == 0) return step;
    return 1;
  }
  // Tiles 0-3: sums; 4, 5: activations; 6, 7: weights of `step` lines.
  static void configure(std::size_t step) {
    TileConfig config;
    for (int tile = 0; tile < 8; ++tile) {
      config.rows[tile] = static_cast<std::uint8_t>(tile < 6 ? kTileRows : step);
      config.row_bytes[tile] = static_cast<std::uint16_t>(tile == 4 || tile == 5 ? 4 * step : 64);
    }
    Unit::configure(config);
  }
  static void release() { Unit::release(); }

  // out[token, panel, 16] = sum over the lines of their products with the tokens' codes, exact. kUnsigned:
  // the lines are unsigned bytes. n_lines is a multiple of `step`.
  template <bool kUnsigned, std::size_t kPanelCount>
  [[gnu::always_inline]] static void multiply(const std::int8_t* codes, std::size_t codes_stride,
                                              const std::byte* const (&lines)[kPanelCount],
                                              std::size_t n_lines, std::size_t step, std::int32_t* out) {
    static_assert(kPanelCount <= kPanels);
    Unit::template zero<0>();
    Unit::template zero<2>();
    if constexpr (kPanelCount == 2) {
      Unit::template zero<1>();
      Unit::template zero<3>();
    }
    for (std::size_t line = 0; line < n_lines; line += step) {
      Unit::template load<4>(codes + 4 * line, codes_stride);
      Unit::template load<6>(lines[0] + line * quant::kLineBytes, quant::kLineBytes);
      Unit::template dot<kUnsigned, 0, 4, 6>();
      Unit::template load<5>(codes + kTileRows * codes_stride + 4 * line, codes_stride);
      Unit::template dot<kUnsigned, 2, 5, 6>();
      if constexpr (kPanelCount == 2) {
        Unit::template load<7>(lines[1] + line * quant::kLineBytes, quant::kLineBytes);
        Unit::template dot<kUnsigned, 1, 4, 7>();
        Unit::template dot<kUnsigned, 3, 5, 7>();
      }
    }
    constexpr std::size_t kRow = kPanelCount * quant::kPanelRows;
    Unit::template store<0>(out, kRow * 4);
    Unit::template store<2>(out + kTileRows * kRow, kRow * 4);
    if constexpr (kPanelCount == 2) {
      Unit::template store<1>(out + quant::kPanelRows, kRow * 4);
      Unit::template store<3>(out + kTileRows * kRow + quant::kPanelRows, kRow * 4);
    }
  }
};

}  // namespace quern::kernels
