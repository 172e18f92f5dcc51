// Attention over int8 keys and values on the byte products of the CPU, after SageAttention (arXiv 2410.02367) with
// finer scales: queries become int8 codes with a scale per row; weights (softmax times the value's own scale)
// become codes with a scale per row and block of 32 keys (attention_shares.hpp). Integer sums are exact; floats
// follow one order: score = (float(q k) * k_scale) * unit, where the unit is the query's scale (the softmax multiplies
// by it on the way to the exponent), output = fma(float(p v), p_scale, output) with the blocks ascending. Keys that a
// row does not see have weight 0 exactly, whatever lies in their slots.
// Not here: what else happens to scores: their scale, biases, soft-caps (attention.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/attention_queries.hpp"
#include "kernels/ops/attention_shares.hpp"
#include "kernels/ops/attention_values.hpp"
#include "kernels/ops/attention_work.hpp"

namespace quern::kernels {

template <class P>
struct AttentionInteger {
  using V16 = typename P::V16;
  using I16 = typename P::I16;
  using Line = typename P::Line;
  using Work = AttentionWork<P>;
  using Shares = AttentionShares<P>;
  using Queries = AttentionQueries<P>;
  using Values = AttentionValues<P>;

  static bool serves(CacheType type) { return type == CacheType::int8; }
  // Scores of 16 rows are 16 KiB: half of L1. Values of latent rows are turned once for all rows of a call.
  static std::size_t rows_at_once(const CacheLayout& layout) { return layout.d_rope != 0 ? kAttendQueries : 16; }

  // Scores of all rows in the unit of each; hidden keys of half blocks that the row sees at -infinity.
  static void score(Work& work) {
    const Queries queries(work);
    const bool latent = queries.n_parts() > 1;
    for (std::size_t r = 0; r < work.n_rows; ++r) work.unit[r] = latent ? 1.0f : queries.scale(queries.part(0), r);
    for (std::size_t b = 0; b < work.args.n_blocks; ++b) {
      work.ahead.ask(AttentionAhead<P>::kScores);
      for (std::size_t r = 0; r < work.n_rows; r += kScoreRows) {
        const std::size_t rest = work.n_rows - r, n = rest < kScoreRows ? rest : kScoreRows;
        if (!work.any_sees(r, n, b)) continue;
        score_rows<kScoreRows>(work, queries, {r, b}, n);
        work.hide_parts(r, n, b);
      }
    }
  }

  // Outputs of all rows.
  static void weigh_values(Work& work) {
    for (std::size_t i = 0; i < work.n_rows * work.v_width; i += 16) P::store(work.o + i, P::zero());
    for (std::size_t b = 0; b < work.args.n_blocks; ++b) {
      work.ahead.ask(AttentionAhead<P>::kValues);
      if (!work.any_sees(0, work.n_rows, b)) continue;
      const Values values(work, b);
      for (std::size_t r = 0; r < work.n_rows; r += kValueRows) {
        const std::size_t rest = work.n_rows - r, n = rest < kValueRows ? rest : kValueRows;
        if (work.any_sees(r, n, b)) value_rows<kValueRows>(work, values, r, n);
      }
    }
  }

 private:
  // Registers: rows x half blocks of scores, rows x 16 columns of outputs.
  static constexpr bool kWide = P::kTileLanes >= 24;
  static constexpr std::size_t kScoreRows = kWide ? 8 : 4, kScoreHalves = kWide ? 2 : 1;
  static constexpr std::size_t kValueRows = 4, kValueChunks = kWide ? 4 : 1;
  static constexpr bool kUnsignedShares = Shares::kUnsigned;

  struct Place {
    std::size_t row, block;
  };

  template <std::size_t kRows>
  static void score_rows(const Work& work, const Queries& queries, const Place& at, std::size_t n) {
    if (n == kRows) {
      for (std::size_t half = 0; half < 2; half += kScoreHalves) {
        score_tile<kRows>(work, queries, at, half);
        if (queries.n_parts() > 1) add_rotated<kRows>(work, queries, at, half);
      }
    } else if constexpr (kRows > 1) {
      score_rows<kRows - 1>(work, queries, at, n);
    }
  }

  template <std::size_t kRows>
  using Sums = I16[kRows][kScoreHalves];

  // Products of the rows' codes with one part of the keys of the half blocks from `first` on.
  template <std::size_t kRows>
  [[gnu::always_inline]] static void dot_lines(const Work& work, const Queries& queries, const typename Queries::Part& part,
                                               const Place& at, std::size_t first, Sums<kRows>& sum) {
    const std::size_t half_lines = queries.lines(), stride = queries.stride();
    const std::byte* keys = work.args.blocks[at.block] + (first * half_lines + part.first_line) * 64;
    const std::int8_t* codes = queries.codes(part, at.row);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t h = 0; h < kScoreHalves; ++h) sum[r][h] = P::iset(queries.start(part, at.row + r));
    std::size_t line = 0;
    do {  // no part is empty
      Line k[kScoreHalves];
      for (std::size_t h = 0; h < kScoreHalves; ++h)
        k[h] = P::bias_line(P::load_line(keys + (h * half_lines + line) * 64));
#pragma GCC unroll 8
      for (std::size_t r = 0; r < kRows; ++r) {
        const typename P::Quad x = P::quad(codes + r * stride + 4 * line);
        for (std::size_t h = 0; h < kScoreHalves; ++h) sum[r][h] = P::dot4_biased(sum[r][h], k[h], x);
      }
    } while (++line < part.n_lines);
  }

  template <std::size_t kRows>
  static void score_tile(const Work& work, const Queries& queries, const Place& at, std::size_t first) {
    const typename Queries::Part& part = queries.part(0);
    Sums<kRows> sum;
    dot_lines<kRows>(work, queries, part, at, first, sum);
    // Places and scales first: the compiler takes every store of a vector for one that may change what `work` holds.
    float* out = work.score_of(at.row, 2 * at.block + first);
    V16 scale[kScoreHalves];
    for (std::size_t h = 0; h < kScoreHalves; ++h) scale[h] = work.scales(part.k_scales, 2 * at.block + first + h);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t h = 0; h < kScoreHalves; ++h)
        P::store(out + r * kTileTokens + h * kHalfBlock, P::mul(P::to_float(sum[r][h]), scale[h]));
  }

  // Scores of the latents -> with those of the rotated keys, in units of 1.
  template <std::size_t kRows>
  static void add_rotated(const Work& work, const Queries& queries, const Place& at, std::size_t first) {
    const typename Queries::Part &latent = queries.part(0), &rotated = queries.part(1);
    Sums<kRows> sum;
    dot_lines<kRows>(work, queries, rotated, at, first, sum);
    for (std::size_t h = 0; h < kScoreHalves; ++h) {
      const std::size_t half = 2 * at.block + first + h;
      const V16 scale = work.scales(rotated.k_scales, half);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < kRows; ++r) {
        float* score = work.score_of(at.row + r, half);
        const V16 held = P::mul(P::load(score), P::set(queries.scale(latent, at.row + r)));
        P::store(score, P::fma(P::mul(P::to_float(sum[r][h]), scale), P::set(queries.scale(rotated, at.row + r)), held));
      }
    }
  }

  template <std::size_t kRows>
  static void value_rows(const Work& work, const Values& values, std::size_t r, std::size_t n) {
    if (n == kRows) {
      std::size_t c = 0;
      for (; c + kValueChunks <= values.chunks; c += kValueChunks) value_tile<kRows, kValueChunks>(work, values, r, c);
      for (; c < values.chunks; ++c) value_tile<kRows, 1>(work, values, r, c);
    } else if constexpr (kRows > 1) {
      value_rows<kRows - 1>(work, values, r, n);
    }
  }

  template <std::size_t kRows, std::size_t kChunks>
  static void value_tile(const Work& work, const Values& values, std::size_t row, std::size_t chunk) {
    I16 sum[kRows][kChunks];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t c = 0; c < kChunks; ++c)
        sum[r][c] = kUnsignedShares ? P::izero() : P::iload(values.start + (chunk + c) * 16);
    const std::byte* shares = Shares::of(work, row) + values.block * kBlockTokens;
    const std::byte* lines = values.lines + chunk * 64;
    for (std::size_t quad = 0; quad < Values::kQuads; ++quad, lines += values.chunks * 64) {
      Line v[kChunks];
      for (std::size_t c = 0; c < kChunks; ++c) v[c] = P::load_line(lines + c * 64);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < kRows; ++r) {
        const auto* at = reinterpret_cast<const std::int8_t*>(shares + r * kTileTokens * sizeof(float) + 4 * quad);
        const typename P::Quad share = P::quad(at);
        for (std::size_t c = 0; c < kChunks; ++c) sum[r][c] = weigh(sum[r][c], v[c], share);
      }
    }
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r) {
      const V16 scale = P::set(work.share_scale[row + r][values.block]);
      float* o = work.o + (row + r) * work.v_width + chunk * 16;
      for (std::size_t c = 0; c < kChunks; ++c)
        P::store(o + 16 * c, P::fma(P::to_float(sum[r][c]), scale, P::load(o + 16 * c)));
    }
  }
  [[gnu::always_inline]] static I16 weigh(I16 sum, Line v, typename P::Quad share) {
    if constexpr (kUnsignedShares)
      return P::dot4_shares(sum, v, share);
    else
      return P::dot4(sum, v, share);
  }
};

}  // namespace quern::kernels
