// Activations to int8 codes with one float scale per group of columns, and the sums of the codes.
// scale = max |x| / 127, code = round(x * (127 / max |x|)): in [-127, 127] by construction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.hpp"

namespace quern::kernels {

template <class P>
struct QuantizeOps {
  using V16 = typename P::V16;
  using I16 = typename P::I16;

  // Below this a group is stored as zeros: 127 / max would overflow. Activations of 1e-33 carry
  // nothing.
  static constexpr float kSmallest = 0x1p-110f;

  static void quantize(const float* x, std::size_t x_stride, std::size_t n_tokens,
                       std::size_t columns, std::size_t group, const QuantizedRows& q) {
    for (std::size_t t = 0; t < n_tokens; ++t) {
      const float* row = x + t * x_stride;
      std::int8_t* codes = q.codes + t * q.codes_stride;
      float* scales = q.scales + t * q.groups_stride;
      std::int32_t* sums = q.sums + t * q.groups_stride;
      std::size_t g = 0;
      for (std::size_t k = 0; k < columns;) {
        if (k % quant::kSuperColumns == 0) own_lines(codes + k + kAhead);
        const bool eight = group == kEightColumns && columns - k >= 8 * group &&
                           quantize_eight(row + k, codes + k, scales + g, sums + g);
        const std::size_t n = columns - k < group ? columns - k : group;
        if (!eight) scales[g] = quantize_group(row + k, n, codes + k, sums[g]);
        k += eight ? 8 * group : n;
        g += eight ? 8 : 1;
      }
      // As far as a kernel reads: whole super-blocks.
      const std::size_t whole = (columns + quant::kSuperColumns - 1) / quant::kSuperColumns * quant::kSuperColumns;
      const std::size_t end = whole < q.codes_stride ? whole : q.codes_stride;
      for (std::size_t k = columns; k < end; ++k) codes[k] = 0;
    }
  }

  // Writes n codes; returns the scale.
  static float quantize_group(const float* x, std::size_t n, std::int8_t* codes,
                              std::int32_t& sum) {
    V16 largest = P::zero(), probe = P::zero();
    for (std::size_t i = 0; i < n; i += 16) {
      const V16 v = load(x + i, n - i);
      largest = P::max(P::abs(v), largest);
      probe = P::fma(v, P::zero(), probe);  // NaN once any value is NaN or infinite
    }
    const float max = P::reduce_max(largest);
    const float finite = P::reduce_add(probe);
    const bool zero = !(max >= kSmallest) || finite != 0.0f;  // NaN is not 0 either
    const V16 factor = P::set(zero ? 0.0f : 127.0f / max);
    I16 total = P::izero();
    for (std::size_t i = 0; i < n; i += 16) {
      const I16 code = zero ? P::izero() : P::to_int(P::mul(load(x + i, n - i), factor));
      total = P::iadd(total, code);
      store(codes + i, code, n - i);
    }
    sum = P::ireduce_add(total);
    if (finite != 0.0f) return finite;  // NaN in the input stays visible in the output
    return zero ? 0.0f : max / 127.0f;
  }

 private:
  static constexpr bool kEightAtOnce = requires(const V16 (&floats)[8], const I16 (&ints)[8]) {
    P::reduce_max8(floats);
    P::ireduce_add8(ints);
  };
  // Eight groups of 32 columns: the same as quantize_group() of each, whose three sums over lanes take most of its time,
  // with one sum for eight (x 2.4 on a Zen 5). False, and nothing written, where the CPU has no way to do that or a
  // value is not finite.
  static constexpr std::size_t kEightColumns = 32;
  static bool quantize_eight([[maybe_unused]] const float* x, [[maybe_unused]] std::int8_t* codes,
                             [[maybe_unused]] float* scales, [[maybe_unused]] std::int32_t* sums) {
    if constexpr (!kEightAtOnce) {
      return false;
    } else {
      V16 largest[8], probe = P::zero();  // NaN once any value is NaN or infinite
#pragma GCC unroll 8
      for (std::size_t g = 0; g < 8; ++g) {
        const V16 a = P::load(x + g * 32), b = P::load(x + g * 32 + 16);
        probe = P::fma(b, P::zero(), P::fma(a, P::zero(), probe));
        largest[g] = P::max(P::abs(a), P::abs(b));
      }
      if (P::reduce_add(probe) != 0.0f) return false;
      const V16 max = P::reduce_max8(largest), least = P::set(kSmallest), most = P::set(127.0f);
      float factors[16];
      P::store(factors, P::select_less(max, least, P::zero(), P::div(most, max)));
      P::store_n(scales, P::select_less(max, least, P::zero(), P::div(max, most)), 8);
      I16 total[8];
#pragma GCC unroll 8
      for (std::size_t g = 0; g < 8; ++g) {
        const V16 factor = P::set(factors[g]);
        const I16 a = P::to_int(P::mul(P::load(x + g * 32), factor));
        const I16 b = P::to_int(P::mul(P::load(x + g * 32 + 16), factor));
        P::store_i8(codes + g * 32, a);
        P::store_i8(codes + g * 32 + 16, b);
        total[g] = P::iadd(a, b);
      }
      std::int32_t totals[16];
      P::istore(totals, P::ireduce_add8(total));
      __builtin_memcpy(sums, totals, 8 * sizeof(std::int32_t));
      return true;
    }
  }

  // Codes were read by other cores: their lines are asked for, to be written, this many bytes ahead.
  static constexpr std::size_t kAhead = 512, kLines = 4;
  static void own_lines([[maybe_unused]] const std::int8_t* codes) {
#if defined(__x86_64__)
    for (std::size_t i = 0; i < kLines; ++i) __asm__ volatile("prefetchw %0" ::"m"(codes[i * quant::kLineBytes]));
#endif
  }
  static V16 load(const float* x, std::size_t n) { return n >= 16 ? P::load(x) : P::load_n(x, n); }
  static void store(std::int8_t* codes, I16 code, std::size_t n) {
    if (n >= 16) return P::store_i8(codes, code);
    std::int8_t all[16];
    P::store_i8(all, code);
    for (std::size_t i = 0; i < n; ++i) codes[i] = all[i];
  }
};

}  // namespace quern::kernels
