// Matrix products of the float formats (f32, bf16, f16, f8): float activations, weights widened to
// float in registers. Per output one chain of fma over the columns of a super-block, starting at
// zero; the super-blocks are then added in order: the same for any number of tokens.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "quant/format.hpp"

namespace quern::kernels {

template <class P, class F>
struct FloatMatmul {
  using V16 = typename P::V16;

  static constexpr std::size_t kSuper = quant::kSuperColumns;
  // One token: the panels' chains of fma (latency 4) run side by side. More: 2 x 6 of 32 registers;
  // with 16 registers (two a V16) 1 x 6.
  static constexpr std::size_t kTilePanels = P::kTileLanes >= 24 ? 2 : 1;
  static constexpr std::size_t kTileTokens = 6;
  static constexpr std::size_t kOneTokenPanels = P::kTileLanes >= 24 ? 4 : 2;
  static constexpr std::size_t kPrefetchBytes = 2048;
  static constexpr bool kScaled = requires { F::kScaled; };  // codes have scales behind them

  static void run(const MatmulArgs& args) {
    std::size_t panel = args.first_panel;
    if (args.n_tokens == 1)
      for (; panel + kOneTokenPanels <= args.end_panel; panel += kOneTokenPanels)
        panels<kOneTokenPanels, 1>(args, panel);
    for (; panel + kTilePanels <= args.end_panel; panel += kTilePanels)
      panels<kTilePanels, kTileTokens>(args, panel);
    for (; panel < args.end_panel; ++panel) panels<1, kTileTokens>(args, panel);
  }

 private:
  struct TileArgs {
    const std::byte* block;  // super-block of the first panel
    std::size_t panel_bytes;
    std::size_t columns;  // of this super-block, without padding
    std::size_t padded_columns;
    bool first_block;
    const float* x;  // [tokens, x_stride], first column of the super-block
    std::size_t x_stride;
    float* out;  // [tokens, out_stride]
    std::size_t out_stride;
  };

  // Splits the tokens evenly: 7 are 4 + 3, not 6 + 1.
  template <std::size_t kPanels, std::size_t kTokens>
  static void panels(const MatmulArgs& args, std::size_t panel) {
    const std::size_t n_tiles = (args.n_tokens + kTokens - 1) / kTokens;
    const std::byte* block = args.weights + panel * args.panel_bytes;
    for (std::size_t k = 0; k < args.columns; k += kSuper) {
      const std::size_t columns = args.columns - k < kSuper ? args.columns - k : kSuper;
      std::size_t first = 0;
      for (std::size_t i = 0; i < n_tiles; ++i) {
        const std::size_t n = (args.n_tokens - first + n_tiles - i - 1) / (n_tiles - i);
        const TileArgs tile = {
            .block = block,
            .panel_bytes = args.panel_bytes,
            .columns = columns,
            .padded_columns = (columns + F::kColumnStep - 1) / F::kColumnStep * F::kColumnStep,
            .first_block = k == 0,
            .x = args.x + first * args.x_stride + k,
            .x_stride = args.x_stride,
            .out = args.out + first * args.out_stride + panel * quant::kPanelRows,
            .out_stride = args.out_stride};
        run_tile<kPanels, kTokens>(tile, n);
        first += n;
      }
      block += F::super_block_bytes(kSuper);
    }
  }

  template <std::size_t kPanels, std::size_t kTokens>
  static void run_tile(const TileArgs& a, std::size_t n_tokens) {
    if (n_tokens == kTokens) return tile<kPanels, kTokens>(a);
    if constexpr (kTokens > 1) run_tile<kPanels, kTokens - 1>(a, n_tokens);
  }

  template <std::size_t kPanels, std::size_t kTokens>
  static void tile(const TileArgs& a) {
    V16 acc[kTokens][kPanels];
#pragma GCC unroll 8
    for (std::size_t t = 0; t < kTokens; ++t)
      for (std::size_t p = 0; p < kPanels; ++p) acc[t][p] = P::zero();
    constexpr std::size_t kStep = F::kColumnStep;
    std::size_t k = 0;
    for (; k + kStep <= a.columns; k += kStep) multiply<kPanels, kTokens>(a, k, kStep, acc);
    // The last columns; their neighbours are padding.
    if (kStep > 1 && k < a.columns) multiply<kPanels, kTokens>(a, k, a.columns - k, acc);
#pragma GCC unroll 8
    for (std::size_t t = 0; t < kTokens; ++t)
      for (std::size_t p = 0; p < kPanels; ++p) {
        float* out = a.out + t * a.out_stride + p * quant::kPanelRows;
        P::store(out, a.first_block ? acc[t][p] : P::add(P::load(out), acc[t][p]));
      }
  }

  // The columns k .. k + n - 1 of the super-block, n <= kColumnStep.
  template <std::size_t kPanels, std::size_t kTokens>
  [[gnu::always_inline]] static void multiply(const TileArgs& a, std::size_t k, std::size_t n,
                                              V16 (&acc)[kTokens][kPanels]) {
    constexpr std::size_t kStep = F::kColumnStep;
    V16 w[kPanels][kStep];
    for (std::size_t p = 0; p < kPanels; ++p) load<kTokens>(a, p, k, w[p]);
    for (std::size_t j = 0; j < n; ++j)
#pragma GCC unroll 8
      for (std::size_t t = 0; t < kTokens; ++t) {
        const V16 x = P::set(a.x[t * a.x_stride + k + j]);
        for (std::size_t p = 0; p < kPanels; ++p) acc[t][p] = P::fma(w[p][j], x, acc[t][p]);
      }
  }

  template <std::size_t kTokens>
  [[gnu::always_inline]] static void load(const TileArgs& a, std::size_t panel, std::size_t k,
                                          V16 (&w)[F::kColumnStep]) {
    const std::byte* block = a.block + panel * a.panel_bytes;
    if constexpr (kScaled) {
      if constexpr (kTokens == 1) P::prefetch(block + k * quant::kPanelRows + kPrefetchBytes);
      F::template load<P>(block, a.padded_columns, k, w);
    } else {
      const std::byte* line = block + k / F::kColumnStep * quant::kLineBytes;
      if constexpr (kTokens == 1) P::prefetch(line + kPrefetchBytes);
      F::template load<P>(line, w);
    }
  }
};

}  // namespace quern::kernels
