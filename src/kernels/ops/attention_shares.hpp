// Softmax weights of one query row as bytes, for products with int8 values (attention_integer.hpp): weight times the
// value's scale, in codes of 0 .. 250 with a scale per block of 32 keys. A key that the row does not see has weight 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/attention_work.hpp"
#include "kernels/ops/exp.hpp"

namespace quern::kernels {

template <class P>
struct AttentionShares {
  using V16 = typename P::V16;
  using I16 = typename P::I16;
  using Work = AttentionWork<P>;

  // Weights in 0 .. 250: as unsigned bytes, or less 127 where products want signed ones.
  static constexpr bool kUnsigned = requires { P::kUnsignedShares; };
  static constexpr int kOffset = kUnsigned ? 0 : 127;

  // The row's codes [kTileTokens], over its first scores.
  static std::byte* of(const Work& work, std::size_t r) {
    return reinterpret_cast<std::byte*>(work.score_of(r, 0));
  }

  // Scores of row r -> its peak, its sum, and the codes of its weights over its own scores.
  static void soften(Work& work, std::size_t r) {
    V16 peaks = P::set(-__builtin_inff());
    for (std::size_t half = 0; half < kTileHalves; ++half)
      if (work.keys[r][half] != 0) peaks = P::max(P::load(work.score_of(r, half)), peaks);
    work.peak[r] = P::reduce_max(peaks);
    V16 largest[kTileBlocks];
    weigh_keys(work, r, largest);
    float tops[16] = {}, inverse[16];
    block_maxima(largest, tops);
    const V16 top = P::load(tops), least = P::set(kSmallestWeight), codes = P::set(kCodes);
    P::store(inverse, P::select_less(top, least, P::zero(), P::div(codes, P::max(least, top))));
    P::store(tops, P::select_less(top, least, P::zero(), P::div(top, codes)));
    const bool finite = work.finite_values || weights_finite(work, r);
    for (std::size_t b = 0; b < kTileBlocks; ++b) {
      const bool seen = (work.seen[r] >> (2 * b) & 3u) != 0;
      work.share_scale[r][b] = !seen ? 0.0f : finite ? tops[b] : __builtin_nanf("");
      if (seen) encode_block(work, r, b, inverse[b]);
    }
  }

 private:
  static constexpr float kCodes = 250.0f;
  static constexpr float kSmallestWeight = 1e-30f;  // below, its inverse would overflow

  // Scores -> softmax weights times the values' scales, still floats; their sum, and the largest of each block.
  static void weigh_keys(Work& work, std::size_t r, V16 (&largest)[kTileBlocks]) {
    const V16 peak = P::set(work.peak[r]);
    V16 sums = P::zero();
    for (std::size_t b = 0; b < kTileBlocks; ++b) {
      largest[b] = P::zero();
      for (std::size_t half = 2 * b; half < 2 * b + 2; ++half) {
        if (work.keys[r][half] == 0) continue;
        float* out = work.score_of(r, half);
        const V16 p = Exp<P>::exp_weight(P::sub(P::load(out), peak));
        sums = P::add(sums, p);
        V16 weight = P::mul(p, work.scales(work.args.layout->v_scale_offset, half));
        if (!work.finite_values) weight = seen_only(work, r, half, weight);
        P::store(out, weight);
        largest[b] = P::max(largest[b], weight);
      }
    }
    work.total[r] = P::reduce_add(sums);
  }

  // What lies in slots that the row does not see may be infinite or NaN: 0 times it is not 0.
  static V16 seen_only(const Work& work, std::size_t r, std::size_t half, V16 weight) {
    float lanes[16];
    P::store(lanes, weight);
    for (std::size_t i = 0; i < kHalfBlock; ++i)
      if ((work.keys[r][half] >> i & 1u) == 0) lanes[i] = 0.0f;
    return P::load(lanes);
  }
  static bool weights_finite(const Work& work, std::size_t r) {
    V16 probe = P::zero();  // NaN once any weight is NaN or infinite
    for (std::size_t half = 0; half < kTileHalves; ++half)
      if (work.keys[r][half] != 0) probe = P::fma(P::load(work.score_of(r, half)), P::zero(), probe);
    return P::reduce_add(probe) == 0.0f;
  }

  // tops[b] = the largest lane of largest[b].
  static void block_maxima(const V16 (&largest)[kTileBlocks], float* tops) {
    if constexpr (requires { P::reduce_max8(largest); }) {
      P::store(tops, P::reduce_max8(largest));
    } else {
      for (std::size_t b = 0; b < kTileBlocks; ++b) tops[b] = P::reduce_max(largest[b]);
    }
  }

  // Weights of a block -> codes. They replace the row's first scores, which are read before.
  static void encode_block(const Work& work, std::size_t r, std::size_t b, float inverse) {
    for (std::size_t half = 2 * b; half < 2 * b + 2; ++half) {
      V16 weight = P::zero();
      if (work.keys[r][half] != 0) weight = P::load(work.score_of(r, half));
      // NaN, whose scale says so, becomes the right operand.
      const I16 code = P::to_int(P::min(P::mul(weight, P::set(inverse)), P::set(kCodes)));
      std::byte* to = of(work, r) + half * kHalfBlock;
      if constexpr (kUnsigned)
        P::store_u8(reinterpret_cast<std::uint8_t*>(to), code);
      else
        P::store_i8(reinterpret_cast<std::int8_t*>(to), P::iadd(code, P::iset(-kOffset)));
    }
  }
};

}  // namespace quern::kernels
