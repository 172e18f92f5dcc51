// Products with the transpose of some rows of a float matrix (f32, bf16, f16), read from the same
// panels: y = W^T x. A lane is a row: per output one chain of fma over the panels in each of sixteen
// lanes, then the fixed tree; the same for any number of tokens.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "quant/format.hpp"

namespace quern::kernels {

template <class P, class F>
struct TransposedMatmul {
  using V16 = typename P::V16;

  static constexpr std::size_t kTokens = kTransposedTokens;

  static void run(const TransposedArgs& args) {
    for (std::size_t first = 0; first < args.n_tokens; first += kTokens) {
      const std::size_t rest = args.n_tokens - first;
      tokens<kTokens>(args, first, rest < kTokens ? rest : kTokens);
    }
  }

 private:
  static constexpr std::size_t kRows = quant::kPanelRows;

  template <std::size_t kN>
  static void tokens(const TransposedArgs& args, std::size_t first, std::size_t n) {
    if constexpr (kN > 1) {
      if (n < kN) return tokens<kN - 1>(args, first, n);
    }
    const std::size_t first_panel = args.first_row / kRows;
    const std::size_t n_panels = (args.end_row + kRows - 1) / kRows - first_panel;
    spread<kN>(args, first, first_panel, n_panels);
    const std::byte* block = args.weights + first_panel * args.panel_bytes;
    for (std::size_t k = 0; k < args.columns; k += quant::kSuperColumns) {
      const std::size_t rest = args.columns - k;
      const std::size_t end = k + (rest < quant::kSuperColumns ? rest : quant::kSuperColumns);
      const std::byte* line = block;
      for (std::size_t c = k; c < end; c += F::kColumnStep, line += quant::kLineBytes)
        columns<kN>(args, first, n_panels, line, c);
      block += F::super_block_bytes(quant::kSuperColumns);
    }
  }

  // x of each token as lanes of the panels, zero for rows outside the range: scratch [panels, kN, 16].
  template <std::size_t kN>
  static void spread(const TransposedArgs& args, std::size_t first, std::size_t first_panel,
                     std::size_t n_panels) {
    for (std::size_t p = 0; p < n_panels; ++p)
      for (std::size_t t = 0; t < kN; ++t)
        for (std::size_t lane = 0; lane < kRows; ++lane) {
          const std::size_t row = (first_panel + p) * kRows + lane;
          const bool inside = row >= args.first_row && row < args.end_row;
          args.scratch[(p * kN + t) * kRows + lane] =
              inside ? args.x[(first + t) * args.x_stride + row - args.first_row] : 0.0f;
        }
  }

  // The kColumnStep outputs of one line.
  template <std::size_t kN>
  static void columns(const TransposedArgs& args, std::size_t first, std::size_t n_panels,
                      const std::byte* line, std::size_t column) {
    constexpr std::size_t kStep = F::kColumnStep;
    V16 acc[kN][kStep];
    for (std::size_t t = 0; t < kN; ++t)
      for (std::size_t j = 0; j < kStep; ++j) acc[t][j] = P::zero();
    const float* x = args.scratch;
    for (std::size_t p = 0; p < n_panels; ++p, line += args.panel_bytes) {
      V16 w[kStep];
      F::template load<P>(line, w);
      for (std::size_t t = 0; t < kN; ++t, x += kRows) {
        const V16 lanes = P::load(x);
        for (std::size_t j = 0; j < kStep; ++j) acc[t][j] = P::fma(w[j], lanes, acc[t][j]);
      }
    }
    for (std::size_t t = 0; t < kN; ++t)
      for (std::size_t j = 0; j < kStep && column + j < args.columns; ++j)
        args.out[(first + t) * args.out_stride + column + j] = P::reduce_add(acc[t][j]);
  }
};

}  // namespace quern::kernels
