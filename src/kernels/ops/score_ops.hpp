// Scores: softmax and sigmoid of routers and gates, and the lightning indexer's sum over its heads.
// Written once over sixteen lanes with one order of operations; nothing beyond n is touched.
#pragma once

#include <cstddef>

#include "kernels/ops/exp.hpp"

namespace quern::kernels {

template <class P>
struct ScoreOps {
  using V16 = typename P::V16;
  using E = Exp<P>;

  // In place: exp(x - max) / sum, sums in sixteen lanes (i % 16), then the fixed tree.
  static void softmax(float* x, std::size_t n) {
    V16 peaks = P::set(-__builtin_inff());
    for (std::size_t i = 0; i < n; i += 16) peaks = P::max(get(x + i, n - i), peaks);
    const V16 peak = P::set(P::reduce_max(peaks));
    V16 sums = P::zero();
    for (std::size_t i = 0; i < n; i += 16) {
      const V16 p = E::exp(P::sub(get(x + i, n - i), peak));  // 0 in the lanes past the end
      put(x + i, p, n - i);
      sums = P::add(sums, p);
    }
    const V16 total = P::set(P::reduce_add(sums));
    for (std::size_t i = 0; i < n; i += 16) put(x + i, P::div(get(x + i, n - i), total), n - i);
  }

  static void sigmoid(float* x, std::size_t n) {
    const V16 one = P::set(1.0f);
    for (std::size_t i = 0; i < n; i += 16) {
      const V16 v = get(x + i, n - i);
      put(x + i, E::times_sigmoid(one, v), n - i);
    }
  }

  // out[i] += weight * max(x[i], 0).
  static void add_relu(float* out, const float* x, float weight, std::size_t n) {
    for (std::size_t i = 0; i < n; i += 16) {
      const V16 positive = P::max(P::zero(), get(x + i, n - i));
      put(out + i, P::fma(P::set(weight), positive, get(out + i, n - i)), n - i);
    }
  }

 private:
  // Sixteen lanes, -infinity past the end.
  static V16 get(const float* p, std::size_t rest) {
    if (rest >= 16) return P::load(p);
    float lanes[16];
    for (std::size_t i = 0; i < 16; ++i) lanes[i] = i < rest ? p[i] : -__builtin_inff();
    return P::load(lanes);
  }
  static void put(float* p, V16 a, std::size_t rest) {
    if (rest >= 16) {
      P::store(p, a);
    } else {
      P::store_n(p, a, rest);
    }
  }
};

}  // namespace quern::kernels
