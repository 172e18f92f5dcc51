// Softmax weights of one query row as bytes, for products with int8 values (attention_integer.hpp): weight times the
// value's scale, in codes of 0 .. 249 with a scale per block of 32 keys. A key that the row does not see has weight 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/ops/attention_softmax.hpp"
#include "kernels/ops/exp.hpp"

namespace quern::kernels {

template <class P>
struct AttentionShares {
  using V16 = typename P::V16;
  using I16 = typename P::I16;
  using Work = AttentionWork<P>;
  using Softmax = AttentionSoftmax<P>;

  // Weights in 0 .. 249: as unsigned bytes, or less 127 where products want signed ones.
  static constexpr bool kUnsigned = requires { P::kUnsignedShares; };
  static constexpr int kOffset = kUnsigned ? 0 : 127;

  // The row's codes [kTileTokens], over its first scores.
  static std::byte* of(const Work& work, std::size_t r) {
    return reinterpret_cast<std::byte*>(work.score_of(r, 0));
  }

  // Scores of all rows -> their peaks, sums, and the codes of their weights over their own scores.
  static void soften(Work& work) {
    for (std::size_t first = 0; first < work.n_rows; first += kTogether) {
      const std::size_t end = first + kTogether < work.n_rows ? first + kTogether : work.n_rows;
      float top[kTogether][16] = {};  // largest weight of each block
      for (std::size_t r = first; r < end; ++r) work.peak[r] = Softmax::peak(work, r);
      for (std::size_t r = first; r < end; ++r) {
        work.ahead.ask(AttentionAhead<P>::kSoftmax);
        if (work.seen[r] != 0) weigh_keys(work, r, top[r - first]);
      }
      for (std::size_t r = first; r < end; ++r)
        if (work.seen[r] != 0) encode(work, r, top[r - first]);
    }
  }

 private:
  static constexpr float kCodes = 249.0f;
  static constexpr float kSmallestWeight = 1e-30f;  // below, its inverse would overflow
  static constexpr std::size_t kTogether = Softmax::kTogether;

  // Scores -> softmax weights times the values' scales, still floats; their sum, and the largest of each block. The
  // row's peak is in its unit on entry and in units of 1 after.
  static void weigh_keys(Work& work, std::size_t r, float* top) {
    V16 largest[kTileBlocks];
    const bool whole = work.seen[r] == kAllHalves && work.finite_values;
    const V16 sums = whole ? weigh_blocks<true>(work, r, largest) : weigh_blocks<false>(work, r, largest);
    block_maxima(largest, top);
    work.total[r] = P::reduce_add(sums);
    work.peak[r] *= work.unit[r];
  }

  // kWhole: every half block has a key that the row sees, and all values are finite.
  template <bool kWhole>
  [[gnu::always_inline]] static V16 weigh_blocks(const Work& work, std::size_t r, V16 (&largest)[kTileBlocks]) {
    const float factor = Softmax::exponent_factor(work.unit[r]);  // of score - peak
    const V16 scale = P::set(factor), offset = P::set(-work.peak[r] * factor);
    V16 sums = P::zero();
    // Copies: the compiler takes every store of a vector for one that may change what `work` holds.
    const bool finite = work.finite_values;
    const std::byte* const* blocks = work.args.blocks;
    const std::size_t scales = work.args.layout->v_scale_offset;
    const std::uint16_t* keys = work.keys[r];
    float* row = work.score_of(r, 0);
    for (std::size_t b = 0; b < kTileBlocks; ++b) {
      V16 top = P::zero();
#pragma GCC unroll 2
      for (std::size_t half = 0; half < 2; ++half) {
        if (!kWhole && keys[2 * b + half] == 0) continue;
        float* at = row + (2 * b + half) * kHalfBlock;
        const V16 p = Exp<P>::exp2_weight(P::fma(P::load(at), scale, offset));
        sums = P::add(sums, p);
        const auto* v_scales = reinterpret_cast<const float*>(blocks[b] + scales);
        V16 weight = P::mul(p, P::load(v_scales + half * kHalfBlock));
        if (!kWhole && !finite) weight = Softmax::seen_only(keys[2 * b + half], weight);
        P::store(at, weight);
        top = P::max(top, weight);
      }
      largest[b] = top;
    }
    return sums;
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

  // Weights of a row -> codes and their scales.
  static void encode(Work& work, std::size_t r, float* top) {
    float inverse[16];
    const V16 largest = P::load(top), least = P::set(kSmallestWeight), codes = P::set(kCodes);
    P::store(inverse, P::select_less(largest, least, P::zero(), P::div(codes, P::max(least, largest))));
    P::store(top, P::select_less(largest, least, P::zero(), P::div(largest, codes)));
    const bool finite = work.total[r] == work.total[r] && (work.finite_values || weights_finite(work, r));
    if (finite && work.seen[r] == kAllHalves) {
      for (std::size_t b = 0; b < kTileBlocks; ++b) work.share_scale[r][b] = top[b];
#pragma GCC unroll 8
      for (std::size_t b = 0; b < kTileBlocks; ++b) encode_block<true>(work, r, b, inverse[b]);
      return;
    }
    for (std::size_t b = 0; b < kTileBlocks; ++b) {
      const bool seen = (work.seen[r] >> (2 * b) & 3u) != 0;
      work.share_scale[r][b] = !seen ? 0.0f : finite ? top[b] : __builtin_nanf("");  // times any codes
      if (seen && finite) encode_block<false>(work, r, b, inverse[b]);
    }
  }

  // Weights of a block -> codes. They replace the row's first scores, which are read before.
  template <bool kWhole>
  static void encode_block(const Work& work, std::size_t r, std::size_t b, float inverse) {
    I16 codes[2];
    for (std::size_t h = 0; h < 2; ++h) {
      V16 weight = P::zero();
      if (kWhole || work.keys[r][2 * b + h] != 0) weight = P::load(work.score_of(r, 2 * b + h));
      codes[h] = P::iadd(P::to_int(P::mul(weight, P::set(inverse))), P::iset(-kOffset));
    }
    store_codes(of(work, r) + b * kBlockTokens, codes);
  }
  static void store_codes(std::byte* to, const I16 (&codes)[2]) {
    using Code = std::conditional_t<kUnsigned, std::uint8_t, std::int8_t>;
    auto* bytes = reinterpret_cast<Code*>(to);
    if constexpr (requires { P::store_codes(bytes, codes[0], codes[1]); }) {
      P::store_codes(bytes, codes[0], codes[1]);
    } else {
      for (std::size_t h = 0; h < 2; ++h) {
        if constexpr (kUnsigned)
          P::store_u8(bytes + h * kHalfBlock, codes[h]);
        else
          P::store_i8(bytes + h * kHalfBlock, codes[h]);
      }
    }
  }
};

}  // namespace quern::kernels
