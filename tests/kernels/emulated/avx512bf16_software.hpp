// As avx512_software.hpp, the instructions of AVX512_BF16 and those that its primitives
// (avx512bf16.hpp) use beside them. What is subnormal is 0, before and after.
#pragma once

#include "kernels/emulated/avx512_software.hpp"

namespace quern::kernels::software {

using Halves = Lanes<std::uint16_t>;

[[gnu::always_inline]] inline float flushed(float x) {
  return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x;
}
[[gnu::always_inline]] inline float widen_bf16(std::uint16_t x) {
  return flushed(__builtin_bit_cast(float, static_cast<std::uint32_t>(x) << 16));
}
[[gnu::always_inline]] inline std::uint16_t narrow_bf16(float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, flushed(x));
  if (__builtin_isnan(x)) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// vdpbf16ps: the odd products, then the even ones.
[[gnu::always_inline]] inline __m512 dot_bf16(__m512 sum, __m512i a, __m512i b) {
  Reals out = as<Reals>(sum);
  const Halves x = as<Halves>(a), y = as<Halves>(b);
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned odd = 2; odd-- > 0;) {
      const float product = widen_bf16(x.at[2 * i + odd]), by = widen_bf16(y.at[2 * i + odd]);
      out.at[i] = flushed(__builtin_fmaf(product, by, flushed(out.at[i])));
    }
  return as<__m512>(out);
}
[[gnu::always_inline]] inline __m512i narrow_two(__m512 high, __m512 low) {  // vcvtne2ps2bf16
  const Reals x = as<Reals>(low), y = as<Reals>(high);
  Halves out;
  for (unsigned i = 0; i < 16; ++i) {
    out.at[i] = narrow_bf16(x.at[i]);
    out.at[16 + i] = narrow_bf16(y.at[i]);
  }
  return as<__m512i>(out);
}
[[gnu::always_inline]] inline __m256i narrow_one(__m512 a) {  // vcvtneps2bf16
  return as<Ints>(narrow_two(a, a)).lo;
}
[[gnu::always_inline]] inline __m512i permute_words(__m512i index, __m512i table) {  // vpermw
  const Halves i = as<Halves>(index), from = as<Halves>(table);
  Halves to;
  for (unsigned k = 0; k < 32; ++k) to.at[k] = from.at[i.at[k] & 31u];
  return as<__m512i>(to);
}

}  // namespace quern::kernels::software
