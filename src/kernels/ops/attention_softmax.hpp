// What every softmax over a tile's scores shares: the largest score of a row, the factor from its unit to exponents of
// two, and weights without what hidden slots hold. Not here: the weights' own form (attention_shares.hpp,
// attention_pairs.hpp, attention.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/attention_work.hpp"

namespace quern::kernels {

template <class P>
struct AttentionSoftmax {
  using V16 = typename P::V16;
  using Work = AttentionWork<P>;

  // Some rows at a time go through each step together: one row's steps wait for each other (its largest score, its sum,
  // a division).
  static constexpr std::size_t kTogether = 4;  // 4 KiB of scores

  // Largest score of a row, in its unit; -infinity where it sees no key.
  static float peak(const Work& work, std::size_t r) {
    const float* row = work.score_of(r, 0);
    V16 peaks[2] = {P::set(-__builtin_inff()), P::set(-__builtin_inff())};
    if (work.seen[r] == kAllHalves) {
#pragma GCC unroll 8
      for (std::size_t b = 0; b < kTileBlocks; ++b)
        for (std::size_t half = 0; half < 2; ++half)
          peaks[half] = P::max(P::load(row + (2 * b + half) * kHalfBlock), peaks[half]);
    } else {
      for (std::size_t half = 0; half < kTileHalves; ++half)
        if (work.keys[r][half] != 0) peaks[half % 2] = P::max(P::load(row + half * kHalfBlock), peaks[half % 2]);
    }
    return P::reduce_max(P::max(peaks[0], peaks[1]));
  }

  // From scores in a unit to exponents of 2. Not 0, as the unit of a query of zeros is, which would make a hidden key's
  // score of -infinity NaN.
  static float exponent_factor(float unit) {
    constexpr float kLog2E = 1.44269504088896341f, kLeast = 1.17549435e-38f;
    const float factor = unit * kLog2E;
    return factor < kLeast ? kLeast : factor;
  }

  // Weights times scales: those of slots that the row does not see may be infinite or NaN, and 0 times it is not 0.
  [[gnu::noinline]] static V16 seen_only(std::uint32_t keys, V16 weights) {
    float lanes[16];
    P::store(lanes, weights);
    for (std::size_t i = 0; i < kHalfBlock; ++i)
      if ((keys >> i & 1u) == 0) lanes[i] = 0.0f;
    return P::load(lanes);
  }
};

}  // namespace quern::kernels
