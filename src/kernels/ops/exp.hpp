// exp, expm1, tanh, sigmoid and the Gaussian tail on sixteen lanes, from the primitives only: no
// libm, so that every ISA gives the same bits. Polynomials are minimax fits in float (errors beside
// them). NaN gives NaN; nothing here reads memory.
#pragma once

#include <cstdint>

namespace quern::kernels {

template <class P>
struct Exp {
  using V16 = typename P::V16;
  using I16 = typename P::I16;

  // x = n ln 2 + r, |r| <= ln 2 / 2; expm1_r = e^r - 1 to 4e-9. x must be in [-105, 90] or NaN.
  struct Reduced {
    V16 n;        // whole number in [-152, 130]; -152 for NaN, so that it can become an exponent
    V16 expm1_r;  // NaN for NaN
  };
  static Reduced reduce(V16 x) {
    const V16 n = P::max(whole(P::mul(x, P::set(kLog2E))), P::set(-152.0f));
    return {n, expm1_of(x, n)};
  }

  // <= 1 ulp; below -104 zero, above 88.73 infinity.
  static V16 exp(V16 x) {
    const Reduced a = reduce(clamp(x, -105.0f, 90.0f));
    return times_power(P::add(P::set(1.0f), a.expm1_r), a.n);
  }

  // 2^x of softmax weights, x in [-infinity, 1] or NaN, which stays: relative error below 3e-7; exactly 1 at 0, exactly
  // 0 below -126.5. Twelve operations, exp() has twice as many. Always inline: in an object with all kernels gcc would
  // leave it a call, and attention loses 7 %.
  [[gnu::always_inline]] static V16 exp2_weight(V16 x) {
    const V16 bounded = P::max(P::set(-127.0f), x);  // NaN is the right operand
    const V16 shifted = P::add(bounded, P::set(kPowerMagic));
    const V16 r = P::sub(bounded, P::sub(shifted, P::set(kPowerMagic)));
    V16 q = P::set(0.0013264727f);
    q = P::fma(q, r, P::set(0.009671513f));
    q = P::fma(q, r, P::set(0.055507336f));
    q = P::fma(q, r, P::set(0.24022242f));
    q = P::fma(q, r, P::set(0.693147f));
    q = P::fma(q, r, P::set(1.0f));
    return P::mul(q, power_of(shifted));
  }

  // e^x - 1, relative error <= 3 ulp also near 0. x in [-80, 80] or NaN.
  static V16 expm1(V16 x) {
    const Reduced a = reduce(x);
    const V16 power = P::exp2i(P::to_int(P::max(a.n, P::set(-126.0f))));
    return P::fma(power, a.expm1_r, P::sub(power, P::set(1.0f)));
  }

  static V16 tanh(V16 x) {
    // Beyond 10 it is 1 within half an ulp.
    const V16 e = expm1(P::mul(P::set(2.0f), clamp(x, -10.0f, 10.0f)));
    return P::div(e, P::add(e, P::set(2.0f)));
  }

  static V16 softcap(V16 x, float cap) { return P::mul(P::set(cap), tanh(P::div(x, P::set(cap)))); }

  // x / (1 + e^-t): x * sigmoid(t). The power without exp()'s care for results that are no normal numbers: t beyond
  // 87 is 87 here, which moves the result by less than 1e-37 of x.
  [[gnu::always_inline]] static V16 times_sigmoid(V16 x, V16 t) {
    const V16 y = clamp(P::sub(P::zero(), t), -87.0f, 87.0f);
    const V16 shifted = P::fma(y, P::set(kLog2E), P::set(kPowerMagic));
    const V16 e = P::fma(expm1_of(y, P::sub(shifted, P::set(kPowerMagic))), power_of(shifted), power_of(shifted));
    return P::div(x, P::add(P::set(1.0f), e));
  }

  // erfc(a / sqrt 2) / 2, the share of a standard normal above a; a in [0, 6] or NaN. Fit of its
  // logarithm; absolute error below 5e-8.
  static V16 normal_tail(V16 a) {
    V16 q = P::set(9.57201905e-07f);
    q = P::fma(q, a, P::set(-1.58096900e-05f));
    q = P::fma(q, a, P::set(7.80744958e-05f));
    q = P::fma(q, a, P::set(2.07840450e-04f));
    q = P::fma(q, a, P::set(-5.02875866e-03f));
    q = P::fma(q, a, P::set(3.64688002e-02f));
    q = P::fma(q, a, P::set(3.18275422e-01f));
    q = P::fma(q, a, P::set(7.97887862e-01f));
    q = P::fma(q, a, P::set(6.93147123e-01f));
    return exp(P::sub(P::zero(), q));
  }

  // One value through the vector code: the same bits as a lane of exp().
  static float exp1(float x) {
    float lanes[16];
    P::store(lanes, exp(P::set(x)));
    return lanes[0];
  }

  // Bounds on the left: min and max give their right operand when one is NaN.
  static V16 clamp(V16 x, float low, float high) {
    return P::min(P::set(high), P::max(P::set(low), x));
  }

 private:
  static constexpr float kLog2E = 1.44269504088896341f;

  // A sum with it rounds to a whole number n and leaves n + 127 in the lowest bits: the exponent of 2^n, n in
  // [-126, 127], and at n = -127 that of 0.
  static constexpr float kPowerMagic = 12582912.0f + 127.0f;
  static V16 power_of(V16 shifted) { return P::bits_float(P::template shift_left<23>(P::float_bits(shifted))); }

  // e^(x - n ln 2) - 1 where that difference is at most ln 2 / 2; NaN for NaN.
  static V16 expm1_of(V16 x, V16 n) {
    constexpr float kLn2High = 0.693359375f;  // 10 bits: n * kLn2High is exact
    constexpr float kLn2Low = -2.12194440054690583e-4f;
    V16 r = P::fma(n, P::set(-kLn2High), x);
    r = P::fma(n, P::set(-kLn2Low), r);
    V16 q = P::set(0.0013950489f);
    q = P::fma(q, r, P::set(0.0083688898f));
    q = P::fma(q, r, P::set(0.041666206f));
    q = P::fma(q, r, P::set(0.16666518f));
    q = P::fma(q, r, P::set(0.5f));
    return P::fma(P::mul(q, r), r, r);
  }

  // x * 2^n for whole n in [-152, 130], rounded once: in two factors, as n leaves the range of a float's exponent on
  // both sides; the first is exact.
  static V16 times_power(V16 x, V16 n) {
    if constexpr (requires { P::times_power(x, n); }) {
      return P::times_power(x, n);
    } else {
      const V16 half_n = whole(P::mul(n, P::set(0.5f)));
      const V16 first = P::exp2i(P::to_int(half_n));
      const V16 second = P::exp2i(P::to_int(P::sub(n, half_n)));
      return P::mul(P::mul(x, first), second);
    }
  }
  // Nearest whole number, ties to even, for |x| < 2^22: adding 1.5 * 2^23 leaves no fraction bits.
  static V16 whole(V16 x) {
    const V16 magic = P::set(12582912.0f);
    return P::sub(P::add(x, magic), magic);
  }
};

}  // namespace quern::kernels
