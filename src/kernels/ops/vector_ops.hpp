// Vector operations of a layer besides products: norms, rotary positions, activations, sums.
// Written once over sixteen lanes with one order of operations; any length, nothing beyond n is
// touched.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/ops/exp.hpp"

namespace quern::kernels {

template <class P>
struct VectorOps {
  using V16 = typename P::V16;
  using E = Exp<P>;

  static void norm(const NormArgs& args, const float* x, float* y) {
    if (args.accumulate_f64) {
      norm_f64(args, x, y);
    } else {
      norm_f32(args, x, y);
    }
  }

  static void rope(float* x, const float* cosine, const float* sine, std::size_t half, bool pairs) {
    if (pairs) {
      rope_pairs(x, cosine, sine, half);
      return;
    }
    for (std::size_t i = 0; i < half; i += 16) {
      const std::size_t n = count(i, half);
      const V16 a = get(x + i, n), b = get(x + half + i, n);
      const V16 c = get(cosine + i, n), s = get(sine + i, n);
      put(x + i, P::sub(P::mul(a, c), P::mul(b, s)), n);
      put(x + half + i, P::add(P::mul(b, c), P::mul(a, s)), n);
    }
  }

  static void activate(ActivationOp op, float* x, std::size_t n) {
    with_function(op, [&](auto function) {
      for (std::size_t i = 0; i < n; i += 16) {
        const std::size_t m = count(i, n);
        put(x + i, function(get(x + i, m)), m);
      }
    });
  }

  static void activate_gated(ActivationOp op, const float* gate, float* up, std::size_t n) {
    with_function(op, [&](auto function) {
      for (std::size_t i = 0; i < n; i += 16) {
        const std::size_t m = count(i, n);
        put(up + i, P::mul(get(up + i, m), function(get(gate + i, m))), m);
      }
    });
  }

  static void scale(float* x, float factor, std::size_t n) {
    for (std::size_t i = 0; i < n; i += 16) {
      const std::size_t m = count(i, n);
      put(x + i, P::mul(get(x + i, m), P::set(factor)), m);
    }
  }

  static void add(float* x, const float* y, std::size_t n) {
    for (std::size_t i = 0; i < n; i += 16) {
      const std::size_t m = count(i, n);
      put(x + i, P::add(get(x + i, m), get(y + i, m)), m);
    }
  }

  // x = x * x_scale + y * y_scale; the second product is the fused one.
  static void scaled_add(float* x, float x_scale, const float* y, float y_scale, std::size_t n) {
    for (std::size_t i = 0; i < n; i += 16) {
      const std::size_t m = count(i, n);
      const V16 scaled = P::mul(get(x + i, m), P::set(x_scale));
      put(x + i, P::fma(get(y + i, m), P::set(y_scale), scaled), m);
    }
  }

  static void clamp(float* x, float low, float high, std::size_t n) {
    for (std::size_t i = 0; i < n; i += 16) {
      const std::size_t m = count(i, n);
      // The second operand is the result where one is NaN: it stays.
      put(x + i, P::min(P::set(high), P::max(P::set(low), get(x + i, m))), m);
    }
  }

  static void shift(float* x, float amount, std::size_t n) {
    for (std::size_t i = 0; i < n; i += 16) {
      const std::size_t m = count(i, n);
      put(x + i, P::add(get(x + i, m), P::set(amount)), m);
    }
  }

  static void softcap(float* x, float cap, std::size_t n) {
    for (std::size_t i = 0; i < n; i += 16) {
      const std::size_t m = count(i, n);
      put(x + i, E::softcap(get(x + i, m), cap), m);
    }
  }

 private:
  static std::size_t count(std::size_t i, std::size_t n) { return n - i < 16 ? n - i : 16; }
  static V16 get(const float* p, std::size_t n) { return n == 16 ? P::load(p) : P::load_n(p, n); }
  static void put(float* p, V16 a, std::size_t n) {
    if (n == 16) {
      P::store(p, a);
    } else {
      P::store_n(p, a, n);
    }
  }

  // Sum over i of term(lanes at i), lanes i % 16 first, then the primitives' tree.
  template <class Term>
  static float sum(std::size_t n, Term term) {
    V16 total = P::zero();
    for (std::size_t i = 0; i < n; i += 16) total = term(total, i, count(i, n));
    return P::reduce_add(total);
  }

  static void norm_f32(const NormArgs& args, const float* x, float* y) {
    const float n = static_cast<float>(args.n);
    float mean = 0.0f;
    if (args.op == NormOp::layer_norm) {
      mean = sum(args.n,
                 [&](V16 t, std::size_t i, std::size_t m) { return P::add(t, get(x + i, m)); }) /
             n;
    }
    const V16 centre = P::set(mean);
    const float squares = sum(args.n, [&](V16 t, std::size_t i, std::size_t m) {
      const V16 d = P::sub(get(x + i, m), lanes_of(centre, m));
      return P::fma(d, d, t);
    });
    const V16 inverse = P::set(1.0f / __builtin_sqrtf(squares / n + args.eps));
    for (std::size_t i = 0; i < args.n; i += 16) {
      const std::size_t m = count(i, args.n);
      finish_norm(args, y, i, P::mul(P::sub(get(x + i, m), centre), inverse));
    }
  }

  // As norm_f32 with every sum and the normalized value in double, rounded once.
  static void norm_f64(const NormArgs& args, const float* x, float* y) {
    const double n = static_cast<double>(args.n);
    double mean = 0.0, squares = 0.0;
    if (args.op == NormOp::layer_norm) {
      for (std::size_t i = 0; i < args.n; ++i) mean += static_cast<double>(x[i]);
      mean /= n;
    }
    for (std::size_t i = 0; i < args.n; ++i) {
      const double d = static_cast<double>(x[i]) - mean;
      squares += d * d;
    }
    const double inverse = 1.0 / __builtin_sqrt(squares / n + static_cast<double>(args.eps));
    for (std::size_t i = 0; i < args.n; i += 16) {
      float lanes[16] = {};
      for (std::size_t j = 0; j < count(i, args.n); ++j)
        lanes[j] = static_cast<float>((static_cast<double>(x[i + j]) - mean) * inverse);
      finish_norm(args, y, i, P::load(lanes));
    }
  }

  static void finish_norm(const NormArgs& args, float* y, std::size_t i, V16 value) {
    const std::size_t m = count(i, args.n);
    if (args.weight != nullptr) value = P::mul(value, get(args.weight + i, m));
    if (args.bias != nullptr) value = P::add(value, get(args.bias + i, m));
    put(y + i, value, m);
  }

  // The first m lanes of a, the others zero: a tail's missing columns must not add mean^2.
  static V16 lanes_of(V16 a, std::size_t m) {
    if (m == 16) return a;
    float lanes[16];
    P::store(lanes, a);
    return P::load_n(lanes, m);
  }

  // Plain loop: the compiler finds the shuffles, and no rounding depends on how.
  static void rope_pairs(float* x, const float* cosine, const float* sine, std::size_t half) {
    for (std::size_t i = 0; i < half; ++i) {
      const float a = x[2 * i], b = x[2 * i + 1];
      x[2 * i] = a * cosine[i] - b * sine[i];
      x[2 * i + 1] = b * cosine[i] + a * sine[i];
    }
  }

  // ---- activations (docs/CONTRACT.md: activation) ----
  static V16 relu(V16 x) { return P::max(P::zero(), x); }
  static V16 silu(V16 x) { return E::times_sigmoid(x, x); }
  static V16 gelu_quick(V16 x) { return E::times_sigmoid(x, P::mul(x, P::set(1.702f))); }

  // x / 2 (1 + tanh(u)) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
  static V16 gelu_tanh(V16 x) {
    const V16 cubic = P::fma(P::mul(x, x), P::set(2.0f * 0.7978845608f * 0.044715f),
                             P::set(2.0f * 0.7978845608f));
    return E::times_sigmoid(x, P::mul(x, cubic));
  }

  // x Phi(x) = max(x, 0) - |x| (1 - Phi(|x|)): one formula for both signs. |x| stops at 6, where
  // the product is 6e-9.
  static V16 gelu_erf(V16 x) {
    const V16 magnitude = P::min(P::set(6.0f), P::abs(x));
    return P::sub(relu(x), P::mul(magnitude, E::normal_tail(magnitude)));
  }

  template <class Body>
  static void with_function(ActivationOp op, Body body) {
    switch (op) {
      case ActivationOp::relu:
        body([](V16 x) { return relu(x); });
        break;
      case ActivationOp::silu:
        body([](V16 x) { return silu(x); });
        break;
      case ActivationOp::gelu_erf:
        body([](V16 x) { return gelu_erf(x); });
        break;
      case ActivationOp::gelu_tanh:
        body([](V16 x) { return gelu_tanh(x); });
        break;
      case ActivationOp::gelu_quick:
        body([](V16 x) { return gelu_quick(x); });
        break;
      case ActivationOp::tanh:
        body([](V16 x) { return E::tanh(x); });
        break;
    }
  }
};

}  // namespace quern::kernels
