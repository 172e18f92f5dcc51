// Matrix products of the integer formats: int8 codes of weights times int8 codes of activations,
// exact sums per activation group, then one float rescale in the order of quant/format.hpp.
//
// Few tokens: each line is unpacked in registers and used at once (matmul_packed.hpp). More
// tokens: a super-block of one to four panels is expanded to operand lines in scratch (L1), then
// multiplied with tiles of tokens; by the matrix unit of the CPU where it has one (P::Tiles) and there are
// tokens to fill it. All follow the same order of float sums, so the split of tokens never shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/ops/matmul_packed.hpp"

namespace quern::kernels {

// One super-block of one panel in operand form.
struct ExpandedBlock {
  static constexpr std::size_t kGroups = quant::kSuperColumns / 16;  // the narrowest group
  std::byte lines[quant::kSuperColumns / 4 * quant::kLineBytes];
  float scales[kGroups][quant::kPanelRows];  // per activation group of the super-block
  float minima[kGroups][quant::kPanelRows];
  std::int32_t zeros[kGroups][quant::kPanelRows];
};

template <class P, class F>
struct IntegerMatmul : MatmulParts<P, F> {
  using Parts = MatmulParts<P, F>;
  using typename Parts::I16, typename Parts::Line, typename Parts::V16;
  using Parts::dot, Parts::kGroup, Parts::kHasZeroPoints, Parts::kOffset, Parts::kOneStream, Parts::kStep, Parts::kSuper,
      Parts::padded, Parts::prefetch_group, Parts::prefetch_step;

  static_assert(kGroup >= kSuper / ExpandedBlock::kGroups);

  // Tiles: tokens x panels. 32 registers: 6 x 2 integer sums beside as many float sums, 2 lines and
  // a broadcast; where a super-block is one group the float sums stay in memory and 6 x 4 fit. 16
  // registers (half a V16 each): 4 x 1.
  static constexpr bool kOneGroup = kGroup == kSuper;
  static constexpr bool kHasUnit = requires { typename P::Tiles; };
  static constexpr std::size_t kTilePanels = P::kTileLanes < 24 ? 1 : kOneGroup && !kHasUnit ? 4 : 2;
  static constexpr std::size_t kTileTokens = P::kTileLanes < 24 ? 4 : 6;
  // Tokens are split evenly: of more than PackedMatmul::kMostTokens no tile gets fewer, but of what the unit leaves.
  static constexpr std::size_t kLeastTokens = kHasUnit || PackedMatmul<P, F>::kMostTokens == 1 ? 1 : kTileTokens * 2 / 3;

  // Tiles side by side that take a super-block of columns before any goes on: 512 tokens' codes of it and their sums
  // with 16 panels are 640 KiB. Two threads of a Zen 5, 512 tokens, against one tile: 1.1B q4_0 x 1.05-1.09, q4 x 1.01.
  static constexpr std::size_t kTogether = kHasUnit || P::kTileLanes < 24 ? 1 : 16 / kTilePanels;

  static void run(const MatmulArgs& args) {
    if (args.n_tokens == 0) return;
    if (args.n_tokens <= PackedMatmul<P, F>::kMostTokens) return PackedMatmul<P, F>::run(args);
    std::size_t panel = args.first_panel;
    for (; panel + kTogether * kTilePanels <= args.end_panel; panel += kTogether * kTilePanels)
      tiles_of<kTilePanels, kTogether>(args, panel);
    for (; panel + kTilePanels <= args.end_panel; panel += kTilePanels)
      tiles_of<kTilePanels, 1>(args, panel);
    if constexpr (kTilePanels == 4)
      for (; panel + 2 <= args.end_panel; panel += 2) tiles_of<2, 1>(args, panel);
    for (; panel < args.end_panel; ++panel) tiles_of<1, 1>(args, panel);
  }

 private:
  // kTiles tiles side by side from `panel` on: all of them, then the next super-block of columns, so that the codes of
  // the tokens come from memory further away than L2 once for all.
  template <std::size_t kPanels, std::size_t kTiles>
  static void tiles_of(const MatmulArgs& args, std::size_t panel) {
    ExpandedBlock* expanded = reinterpret_cast<ExpandedBlock*>(args.scratch);
    const std::size_t columns = padded(args.columns), tile_bytes = kPanels * args.panel_bytes;
    std::size_t offset = 0;
    for (std::size_t k = 0; k < columns; k += kSuper) {
      const std::size_t n = columns - k < kSuper ? columns - k : kSuper;
      const bool last = k + kSuper >= columns;
      // Where the first tile goes on: at its next columns, or on the panels after all of these.
      const std::size_t after = last ? kTiles * tile_bytes : offset + F::super_block_bytes(n);
      for (std::size_t tile = 0; tile < kTiles; ++tile) {
        const std::byte* first = args.weights + panel * args.panel_bytes;
        const std::byte* block = first + tile * tile_bytes + offset;
        const std::byte* next = tile + 1 < kTiles ? block + tile_bytes : first + after;
        for (std::size_t p = 0; p < kPanels; ++p)
          expand(block + p * args.panel_bytes, next + p * args.panel_bytes, n, expanded[p]);
        token_tiles<kPanels>(args, panel + tile * kPanels, k, n);
      }
      offset += F::super_block_bytes(n);
    }
  }

  // next: the super-block that will take this one's place, asked for meanwhile.
  static void expand(const std::byte* block, const std::byte* next, std::size_t columns, ExpandedBlock& to) {
    for (std::size_t c = 0; c < columns; c += kStep) {
      std::byte* lines = to.lines + c / 4 * quant::kLineBytes;
      if constexpr (kOneStream) {
        prefetch_step(next, c);
      } else {
        P::prefetch(next);
        prefetch_group(block, c);
      }
      F::template for_each_line<P>(
          block, columns,
          c / kStep, [&](std::size_t i, Line w) __attribute__((always_inline)) {
            P::store_line(lines + i * quant::kLineBytes, w);
          });
    }
    for (std::size_t g = 0, c = 0; c < columns; ++g, c += kGroup) {
      P::store(to.scales[g], F::template scales<P>(block, columns, c / kStep));
      if constexpr (F::kHasMinimum)
        P::store(to.minima[g], F::template minima<P>(block, columns, c / kStep));
      if constexpr (kHasZeroPoints)
        P::istore(to.zeros[g], F::template zero_points<P>(block, columns, c / kStep));
    }
  }

  // Groups of few lines without a loop: the products of the next follow at once. GEMM in L1, Zen 5: q4_0 and q8 x 1.06.
  static constexpr bool kUnrolled = P::kTileLanes >= 24 && kGroup / 4 <= 8 && F::kColumnStep % kGroup == 0;

  // Splits the tokens evenly: 7 are 4 + 3, not 6 + 1. One function with all its tiles in it: what their calls would reload
  // stays in registers. Two threads of a Zen 5, 512 tokens: 135M q4_0 x 1.06, q8 x 1.05, 1.1B q4_0 x 1.05 (inlined
  // itself, q4 x 0.9); one core, AVX-VNNI: q4 x 1.4, q8 and q4_0 x 0.93.
  template <std::size_t kPanels>
  [[gnu::noinline]] static void token_tiles(const MatmulArgs& args, std::size_t panel, std::size_t k,
                                            std::size_t columns) {
    const auto tile_from = [&](std::size_t first) {
      return TileArgs{.expanded = reinterpret_cast<const ExpandedBlock*>(args.scratch),
                      .columns = columns,
                      .first_block = k == 0,
                      .codes = args.q.codes + first * args.q.codes_stride + k,
                      .codes_stride = args.q.codes_stride,
                      .scales = args.q.scales + first * args.q.groups_stride + k / kGroup,
                      .sums = args.q.sums + first * args.q.groups_stride + k / kGroup,
                      .groups_stride = args.q.groups_stride,
                      .out = args.out + first * args.out_stride + panel * quant::kPanelRows,
                      .out_stride = args.out_stride};
    };
    std::size_t first = 0;
    if constexpr (kHasUnit) {
      const std::size_t step = P::Tiles::step_of(kGroup / 4, columns / 4);
      if (args.n_tokens >= P::Tiles::kTokens) P::Tiles::configure(step);
      for (; first + P::Tiles::kTokens <= args.n_tokens; first += P::Tiles::kTokens)
        unit_tile<kPanels>(tile_from(first), step);
      if (first > 0) P::Tiles::release();
    }
    const std::size_t n_tiles = (args.n_tokens - first + kTileTokens - 1) / kTileTokens;
    for (std::size_t i = 0; i < n_tiles; ++i) {
      const std::size_t n = (args.n_tokens - first + n_tiles - i - 1) / (n_tiles - i);
      run_tile<kPanels, kTileTokens>(tile_from(first), n);
      first += n;
    }
  }

  struct TileArgs {
    const ExpandedBlock* expanded;  // [kPanels]
    std::size_t columns;            // of this super-block
    bool first_block;               // sums start at zero, else at what `out` holds
    const std::int8_t* codes;       // [tokens, codes_stride], first column of the super-block
    std::size_t codes_stride;
    const float* scales;  // [tokens, groups_stride]
    const std::int32_t* sums;
    std::size_t groups_stride;
    float* out;  // [tokens, out_stride]
    std::size_t out_stride;
    [[gnu::always_inline]] float* sum(std::size_t token, std::size_t panel) const {
      return out + token * out_stride + panel * quant::kPanelRows;
    }
  };

  // Tiles::kTokens tokens by the matrix unit: the exact sums of a group to memory, then its rescale.
  template <std::size_t kPanels>
  static void unit_tile(const TileArgs& a, std::size_t step) {
    constexpr std::size_t kTokens = P::Tiles::kTokens;
    alignas(64) std::int32_t sums[kTokens * kPanels * quant::kPanelRows];
    for (std::size_t g = 0, begin = 0; begin < a.columns; ++g, begin += kGroup) {
      const std::size_t end = a.columns - begin < kGroup ? a.columns : begin + kGroup;
      const std::byte* lines[kPanels];
      for (std::size_t p = 0; p < kPanels; ++p)
        lines[p] = a.expanded[p].lines + begin / 4 * quant::kLineBytes;
      P::Tiles::template multiply<F::kUnsignedCodes || P::kBias != 0, kPanels>(
          a.codes + begin, a.codes_stride, lines, (end - begin) / 4, step, sums);
      for (std::size_t t = 0; t < kTokens; ++t)
        for (std::size_t p = 0; p < kPanels; ++p) {
          const I16 from = start(a, p, g, a.sums[t * a.groups_stride + g]);
          const I16 sum = P::iadd(P::iload(sums + (t * kPanels + p) * quant::kPanelRows), from);
          const bool fresh = a.first_block && g == 0;
          const V16 y = fresh ? P::zero() : P::load(a.sum(t, p));
          P::store(a.sum(t, p), rescaled(a, g, t, p, sum, y));
        }
    }
  }

  template <std::size_t kPanels, std::size_t kTokens>
  [[gnu::always_inline]] static void run_tile(const TileArgs& a, std::size_t n_tokens) {
    if (n_tokens == kTokens) return tile<kPanels, kTokens>(a);
    if constexpr (kTokens > kLeastTokens) run_tile<kPanels, kTokens - 1>(a, n_tokens);
  }

  template <std::size_t kPanels, std::size_t kTokens>
  [[gnu::always_inline]] static void tile(const TileArgs& args) {
    // Where the sums are in memory, a copy: no store to them can change it, so that its pointers stay in registers.
    const std::conditional_t<kOneGroup, TileArgs, const TileArgs&> a = args;
    V16 y[kTokens][kPanels];
    if constexpr (!kOneGroup) {
#pragma GCC unroll 8
      for (std::size_t t = 0; t < kTokens; ++t)
        for (std::size_t p = 0; p < kPanels; ++p)
          y[t][p] = a.first_block ? P::zero() : P::load(a.sum(t, p));
    }
    const std::size_t n_groups = kOneGroup ? 1 : (a.columns + kGroup - 1) / kGroup;
    for (std::size_t g = 0; g < n_groups; ++g) {
      const std::size_t begin = g * kGroup;
      const std::size_t end = a.columns - begin < kGroup ? a.columns : begin + kGroup;
      I16 acc[kTokens][kPanels];
#pragma GCC unroll 8
      for (std::size_t t = 0; t < kTokens; ++t)
        for (std::size_t p = 0; p < kPanels; ++p)
          acc[t][p] = start(a, p, g, a.sums[t * a.groups_stride + g]);
      multiply<kPanels, kTokens>(a, begin / 4, end / 4, acc);
      if (kOneGroup && a.first_block)
        rescale<kPanels, kTokens, true>(a, g, acc, y);
      else
        rescale<kPanels, kTokens, false>(a, g, acc, y);
    }
    if constexpr (!kOneGroup) {
#pragma GCC unroll 8
      for (std::size_t t = 0; t < kTokens; ++t)
        for (std::size_t p = 0; p < kPanels; ++p) P::store(a.sum(t, p), y[t][p]);
    }
  }

  [[gnu::always_inline]] static I16 start(const TileArgs& a, std::size_t panel, std::size_t group,
                                          std::int32_t sum) {
    if constexpr (kHasZeroPoints)
      return P::scale_ints(P::iload(a.expanded[panel].zeros[group]), -sum);
    else
      return P::iset(-kOffset * sum);
  }

  template <std::size_t kPanels, std::size_t kTokens>
  [[gnu::always_inline]] static void multiply(const TileArgs& a, std::size_t line, std::size_t end,
                                              I16 (&acc)[kTokens][kPanels]) {
    if constexpr (kUnrolled) {
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kGroup / 4; ++i) multiply_line(a, line + i, acc);
      return;
    }
    if constexpr (Parts::kWordLines > 1)
      for (; line + Parts::kWordLines <= end; line += Parts::kWordLines) multiply_words(a, line, acc);
    if constexpr (P::kTileLanes < 24)  // such CPUs spend a tenth of this loop on its counter
      for (; line + 2 <= end; line += 2) {
        multiply_line(a, line, acc);
        multiply_line(a, line + 1, acc);
      }
    for (; line < end; ++line) multiply_line(a, line, acc);
  }
  template <std::size_t kPanels, std::size_t kTokens>
  [[gnu::always_inline]] static void multiply_line(const TileArgs& a, std::size_t line, I16 (&acc)[kTokens][kPanels]) {
    Line w[kPanels];
    for (std::size_t p = 0; p < kPanels; ++p) w[p] = P::load_line(a.expanded[p].lines + line * quant::kLineBytes);
#pragma GCC unroll 8
    for (std::size_t t = 0; t < kTokens; ++t) {
      const typename P::Quad x = P::quad(a.codes + t * a.codes_stride + 4 * line);
      for (std::size_t p = 0; p < kPanels; ++p) acc[t][p] = dot(acc[t][p], w[p], x);
    }
  }

  // kWordLines lines at once, summed in 16 bits.
  template <std::size_t kPanels, std::size_t kTokens>
  [[gnu::always_inline]] static void multiply_words(const TileArgs& a, std::size_t first, I16 (&acc)[kTokens][kPanels]) {
    typename P::Words sum[kTokens][kPanels];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < Parts::kWordLines; ++i) {
      Line w[kPanels];
      for (std::size_t p = 0; p < kPanels; ++p) w[p] = P::load_line(a.expanded[p].lines + (first + i) * quant::kLineBytes);
#pragma GCC unroll 8
      for (std::size_t t = 0; t < kTokens; ++t) {
        const typename P::Quad x = P::quad(a.codes + t * a.codes_stride + 4 * (first + i));
        for (std::size_t p = 0; p < kPanels; ++p)
          sum[t][p] = i == 0 ? P::word_products(w[p], x) : P::add_word_products(sum[t][p], w[p], x);
      }
    }
#pragma GCC unroll 8
    for (std::size_t t = 0; t < kTokens; ++t)
      for (std::size_t p = 0; p < kPanels; ++p) acc[t][p] = P::add_words(acc[t][p], sum[t][p]);
  }

  // Adds the scaled sums of group g: to y, or where a super-block is one group straight to memory,
  // so that all registers serve the integers.
  template <std::size_t kPanels, std::size_t kTokens, bool kFirst>
  [[gnu::always_inline]] static void rescale(const TileArgs& a, std::size_t g,
                                             I16 (&acc)[kTokens][kPanels],
                                             V16 (&y)[kTokens][kPanels]) {
#pragma GCC unroll 8
    for (std::size_t t = 0; t < kTokens; ++t) {
      for (std::size_t p = 0; p < kPanels; ++p) {
        V16 sum = P::zero();
        if constexpr (!kOneGroup)
          sum = y[t][p];
        else if constexpr (!kFirst)
          sum = P::load(a.sum(t, p));
        sum = rescaled(a, g, t, p, acc[t][p], sum);
        if constexpr (kOneGroup)
          P::store(a.sum(t, p), sum);
        else
          y[t][p] = sum;
      }
    }
  }

  // y + the scaled sums of group g for one token and panel.
  [[gnu::always_inline]] static V16 rescaled(const TileArgs& a, std::size_t g, std::size_t t, std::size_t p,
                                             I16 sums, V16 y) {
    const V16 d_a = P::set(a.scales[t * a.groups_stride + g]);
    const V16 d = P::mul(P::load(a.expanded[p].scales[g]), d_a);
    y = P::fma(P::to_float(sums), d, y);
    if constexpr (F::kHasMinimum) {
      const V16 m = P::mul(P::load(a.expanded[p].minima[g]), d_a);
      y = P::fma(P::set(static_cast<float>(a.sums[t * a.groups_stride + g])), m, y);
    }
    return y;
  }
};

}  // namespace quern::kernels
