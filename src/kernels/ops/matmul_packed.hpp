// Products of few tokens with the packed weights of an integer format: each line is unpacked in registers and meets up to
// eight tokens at once; nothing is expanded. One token reads several panels side by side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/matmul_parts.hpp"

namespace quern::kernels {

template <class P, class F>
struct PackedMatmul : MatmulParts<P, F> {
  using Parts = MatmulParts<P, F>;
  using typename Parts::I16, typename Parts::Line, typename Parts::V16;
  using Parts::dot, Parts::kGroup, Parts::kStep, Parts::kSuper, Parts::padded, Parts::prefetch_group, Parts::prefetch_step,
      Parts::start, Parts::kOneStream;

  // Tokens that meet a line together. With 16 registers the sums of four spill, and a tile of expanded lines is 10 %
  // faster (q4, AVX2 on a Zen 3).
  static constexpr std::size_t kTogether = P::kTileLanes < 24 ? 1 : 8;
  // More read the panel again, from the nearest caches. 16 fill the tile of a matrix unit.
  static constexpr std::size_t kMostTokens = kTogether == 1 ? 1 : 15;
  static constexpr std::size_t kStreams = kOneStream ? 1 : 4;

  // n_tokens: 1 to kMostTokens.
  static void run(const MatmulArgs& args) {
    if (args.n_tokens == 1) return one(args);
    if constexpr (kTogether > 1)
      for (std::size_t panel = args.first_panel; panel < args.end_panel; ++panel) one_panel(args, panel);
  }

 private:
  static void one(const MatmulArgs& args) {
    std::size_t panel = args.first_panel;
    for (; panel + kStreams <= args.end_panel; panel += kStreams) streams<kStreams>(args, panel);
    if constexpr (kStreams > 2)
      for (; panel + 2 <= args.end_panel; panel += 2) streams<2>(args, panel);
    for (; panel < args.end_panel; ++panel) streams<1>(args, panel);
  }

  template <std::size_t kPanels>
  static void streams(const MatmulArgs& args, std::size_t panel) {
    const std::size_t columns = padded(args.columns);
    const std::byte* block = args.weights + panel * args.panel_bytes;
    V16 y[kPanels];
    for (std::size_t p = 0; p < kPanels; ++p) y[p] = P::zero();
    std::size_t k = 0;
    for (; k + kSuper <= columns; k += kSuper, block += F::super_block_bytes(kSuper))
      blocks_of_one<kPanels>(args, block, kSuper, k, y);
    if (k < columns) blocks_of_one<kPanels>(args, block, columns - k, k, y);
    for (std::size_t p = 0; p < kPanels; ++p)
      P::store(args.out + (panel + p) * quant::kPanelRows, y[p]);
  }

  // One super-block of kPanels panels.
  template <std::size_t kPanels>
  [[gnu::always_inline]] static void blocks_of_one(const MatmulArgs& args, const std::byte* block,
                                                   std::size_t columns, std::size_t k,
                                                   V16 (&y)[kPanels]) {
    for (std::size_t begin = 0; begin < columns; begin += kGroup) {
      const std::size_t end = columns - begin < kGroup ? columns : begin + kGroup;
      const std::size_t group = (k + begin) / kGroup;
      const std::int32_t sum = args.q.sums[group];
      I16 even[kPanels], odd[kPanels];
#pragma GCC unroll 4
      for (std::size_t p = 0; p < kPanels; ++p)
        even[p] = start(block + p * args.panel_bytes, columns, begin, sum), odd[p] = P::izero();
      for (std::size_t c = begin; c < end; c += kStep) {
#pragma GCC unroll 4
        for (std::size_t p = 0; p < kPanels; ++p) {
          const std::byte* from = block + p * args.panel_bytes;
          if constexpr (kOneStream)
            prefetch_step(from + P::kStreamAhead, c);
          else
            prefetch_group(from, c);
          dot_group(from, columns, c / kStep, args.q.codes + k + c, even[p], odd[p]);
        }
      }
      const V16 d_a = P::set(args.q.scales[group]);
#pragma GCC unroll 4
      for (std::size_t p = 0; p < kPanels; ++p) {
        const std::byte* from = block + p * args.panel_bytes;
        const std::size_t first = begin / kStep;
        const V16 d = P::mul(F::template scales<P>(from, columns, first), d_a);
        y[p] = P::fma(P::to_float(P::iadd(even[p], odd[p])), d, y[p]);
        if constexpr (F::kHasMinimum) {
          const V16 m = P::mul(F::template minima<P>(from, columns, first), d_a);
          y[p] = P::fma(P::set(static_cast<float>(sum)), m, y[p]);
        }
      }
    }
  }

  // Adds the products of kStep columns to two chains of sums.
  [[gnu::always_inline]] static void dot_group(const std::byte* block, std::size_t columns,
                                               std::size_t group, const std::int8_t* a, I16& even,
                                               I16& odd) {
    if constexpr (requires { requires F::template kHasDotGroup<P>; }) {
      F::template dot_group<P>(block, columns, group, a, even, odd);
    } else if constexpr (Parts::kWordLines > 1) {
      constexpr std::size_t kLines = kStep / 4, kChains = kLines > Parts::kWordLines ? kLines / Parts::kWordLines : 1;
      typename P::Words sum[kChains] = {};
      F::template for_each_line<P>(
          block, columns, group, [&](std::size_t i, Line w) __attribute__((always_inline)) {
            sum[i % kChains] = P::add_word_products(sum[i % kChains], w, P::quad(a + 4 * i));
          });
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kChains; ++i) even = P::add_words(even, sum[i]);
    } else {
      F::template for_each_line<P>(
          block, columns, group, [&](std::size_t i, Line w) __attribute__((always_inline)) {
            I16& sum = i % 2 == 0 ? even : odd;
            sum = dot(sum, w, P::quad(a + 4 * i));
          });
    }
  }

  // ---- 2 to kMostTokens tokens ----
  static void one_panel(const MatmulArgs& args, std::size_t panel) {
    MatmulArgs part = args;
    const std::size_t n_parts = (args.n_tokens + kTogether - 1) / kTogether;
    std::size_t first = 0;
    for (std::size_t i = 0; i < n_parts; ++i) {  // evenly: 9 are 5 + 4
      part.n_tokens = (args.n_tokens - first + n_parts - i - 1) / (n_parts - i);
      part.q.codes = args.q.codes + first * args.q.codes_stride;
      part.q.scales = args.q.scales + first * args.q.groups_stride;
      part.q.sums = args.q.sums + first * args.q.groups_stride;
      part.out = args.out + first * args.out_stride;
      some<2>(part, panel);
      first += part.n_tokens;
    }
  }

  // Counts without a loop of their own take the next larger one, which then reads the last token twice.
  template <std::size_t kTokens>
  static void some(const MatmulArgs& args, std::size_t panel) {
    constexpr std::size_t kNext = kTokens < 4 ? kTokens + 1 : kTokens + 2;
    if constexpr (kNext <= kTogether)
      if (args.n_tokens > kTokens) return some<kNext>(args, panel);
    const std::size_t columns = padded(args.columns);
    const std::byte* block = args.weights + panel * args.panel_bytes;
    V16 y[kTokens];
    for (std::size_t t = 0; t < kTokens; ++t) y[t] = P::zero();
    std::size_t k = 0;
    for (; k + kSuper <= columns; k += kSuper, block += F::super_block_bytes(kSuper)) some_block(args, block, kSuper, k, y);
    if (k < columns) some_block(args, block, columns - k, k, y);
#pragma GCC unroll 8
    for (std::size_t t = 0; t < kTokens; ++t)
      P::store(args.out + row<kTokens>(args, t) * args.out_stride + panel * quant::kPanelRows, y[t]);
  }

  template <std::size_t kTokens>
  [[gnu::always_inline]] static std::size_t row(const MatmulArgs& args, std::size_t t) {
    return t + 1 < kTokens || t < args.n_tokens ? t : args.n_tokens - 1;
  }

  // One super-block of one panel. Two chains of sums for each of two tokens, else one: at least three in flight.
  template <std::size_t kTokens>
  [[gnu::always_inline]] static void some_block(const MatmulArgs& args, const std::byte* block, std::size_t columns,
                                                std::size_t k, V16 (&y)[kTokens]) {
    constexpr std::size_t kChains = kTokens == 2 ? 2 : 1;
    const QuantizedRows& q = args.q;
    for (std::size_t begin = 0; begin < columns; begin += kGroup) {
      const std::size_t end = columns - begin < kGroup ? columns : begin + kGroup;
      const std::size_t group = (k + begin) / kGroup;
      I16 acc[kTokens][kChains];
#pragma GCC unroll 8
      for (std::size_t t = 0; t < kTokens; ++t) {
        acc[t][0] = start(block, columns, begin, q.sums[row<kTokens>(args, t) * q.groups_stride + group]);
        if constexpr (kChains == 2) acc[t][1] = P::izero();
      }
      for (std::size_t c = begin; c < end; c += kStep) {
        if constexpr (kOneStream)
          prefetch_step(block + P::kStreamAhead, c);
        else
          prefetch_group(block, c);
        F::template for_each_line<P>(
            block, columns, c / kStep, [&](std::size_t i, Line w) __attribute__((always_inline)) {
#pragma GCC unroll 8
              for (std::size_t t = 0; t < kTokens; ++t) {
                const std::int8_t* codes = q.codes + row<kTokens>(args, t) * q.codes_stride + k + c;
                acc[t][i % kChains] = dot(acc[t][i % kChains], w, P::quad(codes + 4 * i));
              }
            });
      }
      const V16 scales = F::template scales<P>(block, columns, begin / kStep);
#pragma GCC unroll 8
      for (std::size_t t = 0; t < kTokens; ++t) {
        const std::size_t at = row<kTokens>(args, t) * q.groups_stride + group;
        const V16 d_a = P::set(q.scales[at]);
        if constexpr (kChains == 2) acc[t][0] = P::iadd(acc[t][0], acc[t][1]);
        y[t] = P::fma(P::to_float(acc[t][0]), P::mul(scales, d_a), y[t]);
        if constexpr (F::kHasMinimum) {
          const V16 m = P::mul(F::template minima<P>(block, columns, begin / kStep), d_a);
          y[t] = P::fma(P::set(static_cast<float>(q.sums[at])), m, y[t]);
        }
      }
    }
  }
};

}  // namespace quern::kernels
