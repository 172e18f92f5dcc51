// Attention over keys and values of 16-bit and 8-bit floats on products of bf16 pairs
// (pair_products.hpp), twice as many a second as of floats where the CPU has them: queries, f16
// values of the cache and softmax weights (times the value's scale) are rounded to bf16, bf16 and
// fp8 values are exact in it; sums are floats. Scores: dimensions in pairs, ascending; outputs:
// keys in pairs, ascending. A pair adds its odd half first. Not here: latent rows, f32 and int4
// (attention_tile.hpp), and what else happens to scores (attention.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/ops/attention_pair_lines.hpp"
#include "kernels/ops/attention_softmax.hpp"
#include "kernels/ops/attention_work.hpp"
#include "kernels/ops/exp.hpp"
#include "kernels/ops/pair_products.hpp"

namespace quern::kernels {

template <class P>
struct AttentionPairs {
  using V16 = typename P::V16;
  using Work = AttentionWork<P>;
  using Softmax = AttentionSoftmax<P>;
  using Pairs = PairProducts<P>;
  using Form = typename Pairs::Form;
  using Operand = typename Pairs::Operand;
  using Lines = AttentionPairLines<P>;
  using Keys = typename Lines::Keys;
  using Values = typename Lines::Values;

  // Scores of all rows in units of 1; hidden keys of half blocks that the row sees at -infinity.
  static void score(Work& work) {
    const AttendArgs& args = work.args;
    for (std::size_t b = 0; b < args.n_blocks; ++b) {
      work.ahead.ask(AttentionAhead<P>::kScores);
      if (!work.any_sees(0, work.n_rows, b)) continue;
      const Keys keys(work, b);
      for (std::size_t r = 0; r < work.n_rows; r += kScoreRows) {
        const std::size_t rest = work.n_rows - r, n = rest < kScoreRows ? rest : kScoreRows;
        if (!work.any_sees(r, n, b)) continue;
        with_form(keys.form, [&](auto form) {
          score_rows<form.value, kScoreRows>(keys, {work.q(r), work.q_stride}, work.score_of(r, 2 * b), n);
        });
        work.hide_parts(r, n, b);
      }
    }
  }

  // Scores of all rows -> their peaks, sums, and their weights as bf16 over their own scores.
  static void soften(Work& work) {
    for (std::size_t first = 0; first < work.n_rows; first += kTogether) {
      const std::size_t end = first + kTogether < work.n_rows ? first + kTogether : work.n_rows;
      for (std::size_t r = first; r < end; ++r) work.peak[r] = Softmax::peak(work, r);
      for (std::size_t r = first; r < end; ++r) {
        work.ahead.ask(AttentionAhead<P>::kSoftmax);
        if (work.seen[r] != 0) weigh_keys(work, r);
      }
    }
  }

  // Outputs of all rows.
  static void weigh_values(Work& work) {
    const AttendArgs& args = work.args;
    for (std::size_t i = 0; i < work.n_rows * work.v_width; i += 16) P::store(work.o + i, P::zero());
    for (std::size_t b = 0; b < args.n_blocks; ++b) {
      work.ahead.ask(AttentionAhead<P>::kValues);
      if (!work.any_sees(0, work.n_rows, b)) continue;
      const Values values(work, b);
      with_form(values.form, [&](auto form) { weigh_block<form.value>(work, values, b); });
    }
  }

 private:
  static constexpr bool kWide = alignof(V16) == 64;  // 32 registers of sixteen lanes
  static constexpr std::size_t kScoreRows = kWide ? 8 : 4, kScoreHalves = kWide ? 2 : 1;
  static constexpr std::size_t kValueRows = 4, kValueChunks = kWide ? 4 : 1;
  static constexpr std::size_t kPair = Lines::kPair, kBlockPairs = Lines::kBlockPairs;
  static constexpr std::size_t kTogether = Softmax::kTogether;

  // f(form) with the form as a constant. Where the CPU has the products, what is converted has the cache's own form.
  template <class F>
  [[gnu::always_inline]] static void with_form(Form form, F f) {
    if constexpr (!Pairs::kNative)
      if (form == Form::converted) return f(std::integral_constant<Form, Form::converted>{});
    f(std::integral_constant<Form, Form::pairs>{});
  }

  // ---- softmax ----
  static std::byte* weights_of(const Work& work, std::size_t r) {
    return reinterpret_cast<std::byte*>(work.score_of(r, 0));
  }
  // The row's peak is in its unit on entry and in units of 1 after.
  static void weigh_keys(Work& work, std::size_t r) {
    // Copies: the compiler takes every store of a vector for one that may change what `work` holds.
    const bool scaled = cache_has_scales(work.args.layout->v_type);
    const std::uint16_t* keys = work.keys[r];
    const V16 top = P::set(work.peak[r]), factor = P::set(Softmax::exponent_factor(work.unit[r]));
    float* row = work.score_of(r, 0);
    std::byte* weights = weights_of(work, r);
    V16 sums = P::zero();
    for (std::size_t half = 0; half < kTileHalves; ++half) {
      if (keys[half] == 0) continue;
      V16 p = Exp<P>::exp2_weight(P::mul(P::sub(P::load(row + half * kHalfBlock), top), factor));
      sums = P::add(sums, p);
      if (scaled) p = P::mul(p, work.scales(work.args.layout->v_scale_offset, half));
      if (scaled && keys[half] != kAllKeys) p = Softmax::seen_only(keys[half], p);
      Pairs::store(weights + half * kHalfBlock / 2 * kPair, p);
    }
    work.total[r] = P::reduce_add(sums);
    work.peak[r] *= work.unit[r];
  }
  // ---- what a row sees of a block ----
  static std::uint32_t keys_of(const Work& work, std::size_t r, std::size_t b) {
    return work.keys[r][2 * b] | static_cast<std::uint32_t>(work.keys[r][2 * b + 1]) << kHalfBlock;
  }
  // How many rows from r on, at most kValueRows, see the whole block.
  static std::size_t rows_seeing_all(const Work& work, std::size_t r, std::size_t b) {
    std::size_t n = 0;
    while (n < kValueRows && r + n < work.n_rows && keys_of(work, r + n, b) == ~std::uint32_t{0})
      ++n;
    return n;
  }

  // ---- scores ----
  struct Queries {
    const float* rows;   // pairs in the place of floats
    std::size_t stride;
  };
  template <Form kForm, std::size_t kRows>
  static void score_rows(const Keys& keys, const Queries& q, float* out, std::size_t n) {
    if (n == kRows) {
      for (std::size_t half = 0; half < 2; half += kScoreHalves)
        score_tile<kForm, kRows>(keys, half, q, out + half * kHalfBlock);
    } else if constexpr (kRows > 1) {
      score_rows<kForm, kRows - 1>(keys, q, out, n);
    }
  }
  template <Form kForm, std::size_t kRows>
  static void score_tile(const Keys& keys, std::size_t first, const Queries& q, float* out) {
    constexpr std::size_t kBytes = Pairs::bytes_of(kForm);
    const std::size_t n_pairs = keys.n_pairs, next_half = keys.half_operands * kBytes;
    const std::byte* operands = keys.operands + first * next_half;
    V16 sum[kRows][kScoreHalves];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t h = 0; h < kScoreHalves; ++h) sum[r][h] = P::zero();
    std::size_t pair = 0;
    do {  // d_k > 0; without the empty case the sums never touch memory
      Operand k[kScoreHalves];
      for (std::size_t h = 0; h < kScoreHalves; ++h)
        k[h] = Pairs::template load<kForm>(operands + h * next_half + pair * kBytes);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < kRows; ++r) {
        const Operand x = Pairs::broadcast(reinterpret_cast<const std::byte*>(q.rows + r * q.stride + pair));
        for (std::size_t h = 0; h < kScoreHalves; ++h) sum[r][h] = Pairs::dot(sum[r][h], k[h], x);
      }
    } while (++pair < n_pairs);
    V16 scale[kScoreHalves];
    for (std::size_t h = 0; h < kScoreHalves; ++h)
      scale[h] =
          keys.scales == nullptr ? P::set(1.0f) : P::load(keys.scales + (first + h) * kHalfBlock);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t h = 0; h < kScoreHalves; ++h)
        P::store(out + r * kTileTokens + h * kHalfBlock, P::mul(sum[r][h], scale[h]));
  }

  // ---- outputs ----
  template <Form kForm>
  static void weigh_block(const Work& work, const Values& values, std::size_t b) {
    for (std::size_t r = 0; r < work.n_rows;) {
      const std::size_t n = rows_seeing_all(work, r, b);
      const std::byte* weights = weights_of(work, r) + b * kBlockPairs * kPair;
      float* o = work.o + r * work.v_width;
      if (n != 0)
        value_rows<kForm, kValueRows>(values, weights, o, n);
      else if (const std::uint32_t keys = keys_of(work, r, b); keys != 0)
        add_values_of<kForm>(values, weights, o, keys);
      r += n != 0 ? n : 1;
    }
  }
  // o [n, chunks * 16] += weights [n rows kTileTokens floats apart, kBlockPairs] times values.
  template <Form kForm, std::size_t kRows>
  static void value_rows(const Values& values, const std::byte* weights, float* o, std::size_t n) {
    if (n == kRows) {
      std::size_t c = 0;
      for (; c + kValueChunks <= values.chunks; c += kValueChunks)
        value_tile<kForm, kRows, kValueChunks>(values, weights, o, c);
      for (; c < values.chunks; ++c) value_tile<kForm, kRows, 1>(values, weights, o, c);
    } else if constexpr (kRows > 1) {
      value_rows<kForm, kRows - 1>(values, weights, o, n);
    }
  }
  template <Form kForm, std::size_t kRows, std::size_t kChunks>
  static void value_tile(const Values& values, const std::byte* weights, float* o, std::size_t chunk) {
    constexpr std::size_t kBytes = Pairs::bytes_of(kForm);
    const std::size_t width = values.chunks * 16, next_pair = values.chunks * kBytes;
    V16 sum[kRows][kChunks];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t c = 0; c < kChunks; ++c) sum[r][c] = P::load(o + r * width + (chunk + c) * 16);
    const std::byte* operands = values.operands + chunk * kBytes;
    for (std::size_t pair = 0; pair < kBlockPairs; ++pair, operands += next_pair) {
      Operand v[kChunks];
      for (std::size_t c = 0; c < kChunks; ++c) v[c] = Pairs::template load<kForm>(operands + c * kBytes);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < kRows; ++r) {
        const Operand x = Pairs::broadcast(weights + (r * kTileTokens + pair) * kPair);
        for (std::size_t c = 0; c < kChunks; ++c) sum[r][c] = Pairs::dot(sum[r][c], v[c], x);
      }
    }
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t c = 0; c < kChunks; ++c) P::store(o + r * width + (chunk + c) * 16, sum[r][c]);
  }
  // One row and those keys only whose bit is set: the others' slots may hold anything.
  template <Form kForm>
  static void add_values_of(const Values& values, const std::byte* weights, float* o, std::uint32_t keys) {
    using Keep = typename Pairs::Keep;
    for (std::size_t c = 0; c < values.chunks; ++c) {
      V16 sum = P::load(o + c * 16);
      for (std::size_t pair = 0; pair < kBlockPairs; ++pair) {
        const std::uint32_t seen = keys >> (2 * pair) & 3u;
        if (seen == 0) continue;
        const Keep keep = seen == 3u ? Keep::both : seen == 1u ? Keep::even : Keep::odd;
        const std::byte* at = values.operands + (pair * values.chunks + c) * Pairs::bytes_of(kForm);
        sum = Pairs::dot(sum, Pairs::template load<kForm>(at, keep), Pairs::broadcast(weights + pair * kPair));
      }
      P::store(o + c * 16, sum);
    }
  }
};

}  // namespace quern::kernels
