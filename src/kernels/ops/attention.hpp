// Attention of the queries of one KV head over one tile of keys, and the end of the softmax.
// A query's result depends on its own row and the keys it sees, nothing else: not on the queries
// beside it (prefill in any chunks = token by token) and not on what lies in slots it does not see
// (never written, or left over from a roll-back, NaN included).
//
// Per row and tile: scores; softcap, ALiBi; max; p = exp(score - max), of whole or of bf16 weights by a shorter
// polynomial (exp2_weight); sum in 16 lanes (key % 16),
// then the fixed tree; o = p v with keys ascending; one merge into the running state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/attention_integer.hpp"
#include "kernels/ops/attention_pairs.hpp"
#include "kernels/ops/attention_queries.hpp"
#include "kernels/ops/attention_shares.hpp"
#include "kernels/ops/attention_softmax.hpp"
#include "kernels/ops/attention_tile.hpp"
#include "kernels/ops/attention_work.hpp"
#include "kernels/ops/cache_int4.hpp"
#include "kernels/ops/cache_store.hpp"
#include "kernels/ops/exp.hpp"

namespace quern::kernels {

template <class P>
struct AttentionOps {
  using V16 = typename P::V16;
  using I16 = typename P::I16;
  using E = Exp<P>;
  using Tile = AttentionTile<P>;
  using Work = AttentionWork<P>;
  using Integer = AttentionInteger<P>;
  using Pairs = AttentionPairs<P>;

  static void store_kv(const CacheLayout& layout, const float* k, const float* v, std::byte* block,
                       std::size_t slot) {
    CacheStore<P>::store_kv(layout, k, v, block, slot);
  }

  static void attend(const AttendArgs& args) {
    const bool integer_k = Integer::serves(args.layout->k_type), integer_v = Integer::serves(args.layout->v_type);
    // Floats are expanded once for the rows; codes are used as they lie, and scores should stay in L1.
    const std::size_t at_once = integer_k && integer_v ? Integer::rows_at_once(*args.layout) : kAttendQueries;
    for (std::size_t first = 0; first < args.n_queries; first += at_once) {
      const std::size_t rest = args.n_queries - first;
      Work work{args, first, rest < at_once ? rest : at_once};
      if (work.any_key()) attend_rows(work);
    }
  }

  static void score_keys(const ScoreArgs& args) {
    typename Tile::Scores scores = Tile::expand_k(*args.layout, args.block, args.scratch);
    scores.q_stride = args.q_stride;
    scores.out = args.scratch + expanded_k_floats(*args.layout);
    const V16 scale = P::set(args.scale);
    const bool scaled = cache_has_scales(args.layout->k_type) && args.layout->d_rope == 0;
    const float* scales = reinterpret_cast<const float*>(args.block + args.layout->k_scale_offset);
    for (std::size_t first = 0; first < args.n_queries; first += Tile::kRows) {
      const std::size_t rest = args.n_queries - first, n = rest < Tile::kRows ? rest : Tile::kRows;
      scores.q = args.q + first * args.q_stride;
      if (args.layout->k_type == CacheType::int4) {
        const std::size_t d_k = args.layout->d_k;
        float* rotated = scores.out + Tile::kRows * kTileTokens;
        for (std::size_t r = 0; r < n; ++r)
          CacheInt4<P>::rotate_query(scores.q + r * args.q_stride, d_k, rotated + r * d_k);
        scores.q = rotated;
        scores.q_stride = d_k;
      }
      Tile::dot_rows(scores, n);
      for (std::size_t r = 0; r < n; ++r)
        for (std::size_t half = 0; half < kBlockTokens; half += kHalfBlock) {
          V16 s = P::load(scores.out + r * kTileTokens + half);
          if (scaled) s = P::mul(s, P::load(scales + half));
          P::store(args.out + (first + r) * args.out_stride + half, P::mul(s, scale));
        }
    }
  }

  // A tile alone, attended from an empty state, joins `state`: the same arithmetic as attend() itself (the merge
  // with an empty state is exact), so tiles may be computed anywhere and folded in index order.
  static void merge_attention(const AttendState& state, const AttendState& tile,
                              std::size_t n_queries, std::size_t d_v) {
    const TileRows rows{tile.max, tile.sum, tile.o, tile.o_stride, (d_v + 15) / 16 * 16};
    merge_rows(state, 0, n_queries, rows,
               [&](std::size_t i) { return tile.sum[i] != 0.0f || tile.max[i] != -__builtin_inff(); });
  }

  static void finish_attention(const AttendState& state, std::size_t n_queries, std::size_t d_v,
                               float* output, std::size_t output_stride, const float* sink_logits) {
    for (std::size_t i = 0; i < n_queries; ++i) {
      float sum = state.sum[i], factor = 1.0f;
      if (sink_logits != nullptr && sum != 0.0f) {
        const float top = state.max[i] > sink_logits[i] ? state.max[i] : sink_logits[i];
        factor = E::exp1(state.max[i] - top);
        sum = sum * factor + E::exp1(sink_logits[i] - top);
      }
      const V16 over = P::set(sum == 0.0f ? 0.0f : factor / sum);  // a row that saw no key: zeros
      const float* o = state.o + i * state.o_stride;
      for (std::size_t c = 0; c < d_v; c += 16) {
        const V16 value = P::mul(P::load(o + c), over);
        float* to = output + i * output_stride + c;
        d_v - c < 16 ? P::store_n(to, value, d_v - c) : P::store(to, value);
      }
    }
  }

 private:
  static void attend_rows(Work& work) {
    const CacheLayout& layout = *work.args.layout;
    const bool integer_v = Integer::serves(layout.v_type), pairs_v = cache_has_bf16_products(layout, layout.v_type);
    if (Integer::serves(layout.k_type)) {
      Integer::score(work);
      finish_rows(work, integer_v || pairs_v);
    } else if (cache_has_bf16_products(layout, layout.k_type)) {
      Pairs::score(work);
      finish_rows(work, integer_v || pairs_v);
    } else {
      score(work);
    }
    if (integer_v) {
      AttentionShares<P>::soften(work);
      Integer::weigh_values(work);
    } else if (pairs_v) {
      Pairs::soften(work);
      Pairs::weigh_values(work);
    } else {
      for (std::size_t r = 0; r < work.n_rows; ++r) {
        work.ahead.ask(AttentionAhead<P>::kSoftmax);
        if (work.seen[r] != 0) soften(work, r);
      }
      weigh_values(work);
    }
    merge(work);
  }

  static void score(Work& work) {
    const AttendArgs& args = work.args;
    for (std::size_t b = 0; b < args.n_blocks; ++b) {
      work.ahead.ask(AttentionAhead<P>::kScores);
      if (!work.any_row(2 * b) && !work.any_row(2 * b + 1)) continue;
      typename Tile::Scores scores = Tile::expand_k(*args.layout, args.blocks[b], work.k_buffer);
      scores.q_stride = work.q_stride;
      for (std::size_t r = 0; r < work.n_rows; r += Tile::kRows) {
        const std::size_t rest = work.n_rows - r, n = rest < Tile::kRows ? rest : Tile::kRows;
        if (!work.any_sees(r, n, b)) continue;
        scores.q = work.q(r);
        scores.out = work.score_of(r, 2 * b);
        Tile::dot_rows(scores, n);
      }
      for (std::size_t r = 0; r < work.n_rows; ++r)
        for (std::size_t half = 2 * b; half < 2 * b + 2; ++half)
          if (work.keys[r][half] != 0) finish_scores(work, r, half, P::load(work.score_of(r, half)));
    }
  }

  // Products of rows in the unit of each -> scores, or `in_units`, where the softmax takes them so, what they are to be
  // multiplied by.
  static void finish_rows(Work& work, bool in_units) {
    const AttendArgs& args = work.args;
    const bool only_scaled = args.softcap == 0.0f && args.alibi == nullptr && args.bias == nullptr && args.scale > 0.0f;
    for (std::size_t r = 0; r < work.n_rows; ++r) {
      if (in_units && only_scaled) {
        work.unit[r] *= args.scale;
        continue;
      }
      const V16 unit = P::set(work.unit[r]);
      for (std::size_t half = 0; half < kTileHalves; ++half)
        if (work.keys[r][half] != 0) finish_scores(work, r, half, P::mul(P::load(work.score_of(r, half)), unit));
      work.unit[r] = 1.0f;
    }
  }

  // Dot products -> scores, -infinity where the row does not see the key.
  static void finish_scores(const Work& work, std::size_t r, std::size_t half, V16 s) {
    const AttendArgs& args = work.args;
    V16 bias = P::zero();
    if (args.alibi != nullptr) bias = alibi(args, work.first + r, half);
    if (args.alibi != nullptr && args.alibi_before_scale) s = P::add(s, bias);
    s = P::mul(s, P::set(args.scale));
    if (args.softcap != 0.0f) s = E::softcap(s, args.softcap);
    if (args.alibi != nullptr && !args.alibi_before_scale) s = P::add(s, bias);
    if (args.bias != nullptr)
      s = P::add(s, P::load(args.bias[work.first + r] + half * kHalfBlock));
    P::store(work.score_of(r, half), s);
    work.hide(r, half);
  }

  static V16 alibi(const AttendArgs& args, std::size_t query, std::size_t half) {
    float index[kHalfBlock];
    for (std::size_t i = 0; i < kHalfBlock; ++i)
      index[i] = static_cast<float>(args.first_key + half * kHalfBlock + i);
    const V16 slope = P::set(args.alibi[query]), keys = P::load(index);
    if (!args.alibi_bf16) return P::mul(slope, keys);
    return PairProducts<P>::nearest(P::mul(slope, PairProducts<P>::nearest(keys)));
  }

  // Scores -> weights of the values: exp(score - peak).
  static void soften(Work& work, std::size_t r) {
    work.peak[r] = AttentionSoftmax<P>::peak(work, r);
    const V16 peak = P::set(work.peak[r]);
    V16 sums = P::zero();
    for (std::size_t half = 0; half < kTileHalves; ++half) {
      if (work.keys[r][half] == 0) continue;
      float* out = work.score_of(r, half);
      const V16 p = E::exp(P::sub(P::load(out), peak));
      sums = P::add(sums, p);
      P::store(out, p);
    }
    work.total[r] = P::reduce_add(sums);
  }

  static void weigh_values(Work& work) {
    const AttendArgs& args = work.args;
    for (std::size_t i = 0; i < work.n_rows * work.v_width; i += 16)
      P::store(work.o + i, P::zero());
    for (std::size_t half = 0; half < kTileHalves; ++half) {
      if (half % 2 == 0) work.ahead.ask(AttentionAhead<P>::kValues);
      if (!work.any_row(half)) continue;
      const float* v = Tile::expand_v(*args.layout, args.blocks[half / 2], half % 2, work.v_buffer,
                                      work.k_buffer);
      for (std::size_t r = 0; r < work.n_rows;) {
        const typename Tile::Values values{v, work.v_width, work.score_of(r, half), kTileTokens,
                                           work.o + r * work.v_width};
        const std::size_t n = rows_seeing_all(work, r, half);
        if (n != 0) {
          Tile::add_values(values, n);
        } else if (work.keys[r][half] != 0) {
          Tile::add_values_of(values, work.keys[r][half]);
        }
        r += n != 0 ? n : 1;
      }
    }
  }

  // How many rows from r on, at most kRows, see the whole half block.
  static std::size_t rows_seeing_all(const Work& work, std::size_t r, std::size_t half) {
    std::size_t n = 0;
    while (n < Tile::kRows && r + n < work.n_rows && work.keys[r + n][half] == kAllKeys) ++n;
    return n;
  }

  // A tile's results of some queries: of query i the peak and total of its scores, and its outputs from o + i *
  // o_stride on.
  struct TileRows {
    const float *peak, *total, *o;
    std::size_t o_stride, v_width;
  };

  static void merge(const Work& work) {
    const TileRows tile{work.peak, work.total, work.o, work.v_width, work.v_width};
    merge_rows(work.args.state, work.first, work.n_rows, tile, [&](std::size_t r) { return work.seen[r] != 0; });
  }

  // state[first + i] <- merge(state[first + i], tile i) of the rows i < n with takes(i): the one place where softmax
  // states meet. Sixteen rows' powers at once.
  template <class Takes>
  static void merge_rows(const AttendState& state, std::size_t first, std::size_t n, const TileRows& tile,
                         Takes takes) {
    for (std::size_t begin = 0; begin < n; begin += 16) {
      const std::size_t some = n - begin < 16 ? n - begin : 16;
      const V16 before = P::load_n(state.max + first + begin, some), peak = P::load_n(tile.peak + begin, some);
      const V16 top = P::max(before, peak);
      float tops[16], keep[16], gain[16];
      P::store(tops, top);
      P::store(keep, E::exp(P::sub(before, top)));
      P::store(gain, E::exp(P::sub(peak, top)));
      for (std::size_t i = 0; i < some; ++i)
        if (takes(begin + i)) merge_row(state, first + begin + i, begin + i, tile, {tops[i], keep[i], gain[i]});
    }
  }

  struct Factors {
    float top, keep, gain;
  };
  static void merge_row(const AttendState& state, std::size_t query, std::size_t row, const TileRows& tile,
                        const Factors& by) {
    float* o = state.o + query * state.o_stride;
    const float* from = tile.o + row * tile.o_stride;
    if (state.max[query] == -__builtin_inff()) {  // empty: the tile as it is, to the sign of its zeros
      state.max[query] = tile.peak[row];
      state.sum[query] = tile.total[row];
      for (std::size_t c = 0; c < tile.v_width; c += 16) P::store(o + c, P::load(from + c));
      return;
    }
    state.max[query] = by.top;
    state.sum[query] = __builtin_fmaf(tile.total[row], by.gain, state.sum[query] * by.keep);
    for (std::size_t c = 0; c < tile.v_width; c += 16) {
      const V16 kept = P::mul(P::load(o + c), P::set(by.keep));
      P::store(o + c, P::fma(P::load(from + c), P::set(by.gain), kept));
    }
  }
};

}  // namespace quern::kernels
