// The AVX-512 instructions that src/kernels/primitives uses, in software, exact, as Intel's manual defines them:
// what acts within lanes of 128 bits as two AVX2 instructions, the rest as plain loops. For the tests alone, so that
// the AVX-512 tables run on every CPU with AVX2. avx512_names.hpp puts these in the place of the intrinsics.
// Not here: rounding other than to nearest even, and exceptions.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace quern::kernels::software {

using Mask16 = std::uint16_t;
using Mask64 = std::uint64_t;

// ---- two registers of AVX2 for one ----
struct Ints {
  __m256i lo, hi;
};
struct Floats {
  __m256 lo, hi;
};
template <class T>
struct alignas(64) Lanes {
  T at[64 / sizeof(T)];
};
using Bytes = Lanes<std::uint8_t>;
using Words = Lanes<std::int32_t>;
using Reals = Lanes<float>;

template <class To, class From>
[[gnu::always_inline]] inline To as(From x) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, x);
}
template <class F>
[[gnu::always_inline]] inline __m512i ints(F f, __m512i a) {
  const Ints x = as<Ints>(a);
  return as<__m512i>(Ints{f(x.lo), f(x.hi)});
}
template <class F>
[[gnu::always_inline]] inline __m512i ints(F f, __m512i a, __m512i b) {
  const Ints x = as<Ints>(a), y = as<Ints>(b);
  return as<__m512i>(Ints{f(x.lo, y.lo), f(x.hi, y.hi)});
}
template <class F>
[[gnu::always_inline]] inline __m512 floats(F f, __m512 a, __m512 b) {
  const Floats x = as<Floats>(a), y = as<Floats>(b);
  return as<__m512>(Floats{f(x.lo, y.lo), f(x.hi, y.hi)});
}

// ---- memory and constants ----
[[gnu::always_inline]] inline __m512i load(const void* p) {
  __m512i x;
  __builtin_memcpy(&x, p, 64);
  return x;
}
[[gnu::always_inline]] inline void store(void* p, __m512i x) {
  __builtin_memcpy(p, &x, 64);
}
// Reads and writes nothing where the mask is clear.
[[gnu::always_inline]] inline __m512 load_or_zero(Mask16 mask, const float* p) {
  Reals x{};
  for (unsigned i = 0; i < 16; ++i)
    if (mask >> i & 1u) x.at[i] = p[i];
  return as<__m512>(x);
}
[[gnu::always_inline]] inline void store_some(float* p, Mask16 mask, __m512 a) {
  const Reals x = as<Reals>(a);
  for (unsigned i = 0; i < 16; ++i)
    if (mask >> i & 1u) p[i] = x.at[i];
}
[[gnu::always_inline]] inline __m512i twice(__m256i x) {
  return as<__m512i>(Ints{x, x});
}
[[gnu::always_inline]] inline __m512i zero() {
  return twice(_mm256_setzero_si256());
}
[[gnu::always_inline]] inline __m512i set1_epi8(int x) {
  return twice(_mm256_set1_epi8(static_cast<char>(x)));
}
[[gnu::always_inline]] inline __m512i set1_epi16(int x) {
  return twice(_mm256_set1_epi16(static_cast<short>(x)));
}
[[gnu::always_inline]] inline __m512i set1_epi32(int x) {
  return twice(_mm256_set1_epi32(x));
}
[[gnu::always_inline]] inline __m512i broadcast_i32x4(__m128i x) {
  return twice(_mm256_broadcastsi128_si256(x));
}
template <class... T>
[[gnu::always_inline]] inline __m512i set_epi64(T... high_to_low) {
  const std::int64_t given[8] = {static_cast<std::int64_t>(high_to_low)...};
  Lanes<std::int64_t> x;
  for (unsigned i = 0; i < 8; ++i) x.at[i] = given[7 - i];
  return as<__m512i>(x);
}

// ---- masks of bytes ----
// All ones in the bytes whose bit is set.
[[gnu::always_inline]] inline __m256i spread(std::uint32_t bits) {
  const __m256i from = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i select = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201u));
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)), from);
  return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, select), select);
}
[[gnu::always_inline]] inline __m512i blend(Mask64 mask, __m512i clear, __m512i set) {
  const Ints x = as<Ints>(clear), y = as<Ints>(set);
  const __m256i low = spread(static_cast<std::uint32_t>(mask)), high = spread(static_cast<std::uint32_t>(mask >> 32));
  return as<__m512i>(Ints{_mm256_blendv_epi8(x.lo, y.lo, low), _mm256_blendv_epi8(x.hi, y.hi, high)});
}
[[gnu::always_inline]] inline Mask64 signs(__m512i a) {
  const Ints x = as<Ints>(a);
  return Mask64{static_cast<std::uint32_t>(_mm256_movemask_epi8(x.lo))} |
         Mask64{static_cast<std::uint32_t>(_mm256_movemask_epi8(x.hi))} << 32;
}

// ---- permutations across lanes ----
[[gnu::always_inline]] inline __m512i permute_bytes(__m512i index, __m512i table) {  // vpermb
  const Bytes i = as<Bytes>(index), from = as<Bytes>(table);
  Bytes to;
  for (unsigned k = 0; k < 64; ++k) to.at[k] = from.at[i.at[k] & 63u];
  return as<__m512i>(to);
}
[[gnu::always_inline]] inline __m512i permute_bytes2(__m512i low, __m512i index, __m512i high) {  // vpermi2b
  const Bytes i = as<Bytes>(index), a = as<Bytes>(low), b = as<Bytes>(high);
  Bytes to;
  for (unsigned k = 0; k < 64; ++k) to.at[k] = (i.at[k] & 64u ? b : a).at[i.at[k] & 63u];
  return as<__m512i>(to);
}
template <int kOrder>
[[gnu::always_inline]] inline __m512 shuffle_quarters(__m512 a, __m512 b) {  // vshuff32x4
  struct alignas(64) Quarters {
    __m128 at[4];
  };
  const Quarters x = as<Quarters>(a), y = as<Quarters>(b);
  return as<__m512>(
      Quarters{{x.at[kOrder & 3], x.at[kOrder >> 2 & 3], y.at[kOrder >> 4 & 3], y.at[kOrder >> 6 & 3]}});
}

// ---- integers ----
template <int kTable>
[[gnu::always_inline]] inline __m512i ternary(__m512i a, __m512i b, __m512i c) {  // vpternlogd: bit abc of kTable
  const Words x = as<Words>(a), y = as<Words>(b), z = as<Words>(c);
  Words out{};
  for (unsigned i = 0; i < 16; ++i)
    for (int row = 0; row < 8; ++row)
      if (kTable >> row & 1)
        out.at[i] |= (row & 4 ? x.at[i] : ~x.at[i]) & (row & 2 ? y.at[i] : ~y.at[i]) & (row & 1 ? z.at[i] : ~z.at[i]);
  return as<__m512i>(out);
}
// vpdpbusd: four products of an unsigned and a signed byte added to an int32, nothing saturates.
[[gnu::always_inline]] inline __m512i dot_bytes(__m512i acc, __m512i unsigned_bytes, __m512i signed_bytes) {
  const auto products = [](__m256i u, __m256i s) {  // even and odd bytes as words
    const __m256i even = _mm256_madd_epi16(_mm256_and_si256(u, _mm256_set1_epi16(0xff)),
                                           _mm256_srai_epi16(_mm256_slli_epi16(s, 8), 8));
    return _mm256_add_epi32(even, _mm256_madd_epi16(_mm256_srli_epi16(u, 8), _mm256_srai_epi16(s, 8)));
  };
  return ints([](__m256i x, __m256i y) { return _mm256_add_epi32(x, y); }, acc,
              ints(products, unsigned_bytes, signed_bytes));
}
template <class To>
[[gnu::always_inline]] inline void cut_words(__m512i a, To* to) {  // vpmovdw, vpmovdb: the low bits
  const Words x = as<Words>(a);
  for (unsigned i = 0; i < 16; ++i) to[i] = static_cast<To>(x.at[i]);
}
[[gnu::always_inline]] inline __m256i cut_to_16(__m512i a) {
  struct alignas(32) Half {
    std::int16_t at[16];
  } half;
  cut_words(a, half.at);
  return as<__m256i>(half);
}
[[gnu::always_inline]] inline __m128i cut_to_8(__m512i a) {
  struct alignas(16) Quarter {
    std::int8_t at[16];
  } quarter;
  cut_words(a, quarter.at);
  return as<__m128i>(quarter);
}
[[gnu::always_inline]] inline std::int32_t sum_words(__m512i a) {
  const Words x = as<Words>(a);
  std::uint32_t sum = 0;  // wraps
  for (std::int32_t lane : x.at) sum += static_cast<std::uint32_t>(lane);
  return static_cast<std::int32_t>(sum);
}

// ---- floats ----
template <int kCompare>
[[gnu::always_inline]] inline Mask16 compare(__m512 a, __m512 b) {
  const Floats x = as<Floats>(a), y = as<Floats>(b);
  return static_cast<Mask16>(_mm256_movemask_ps(_mm256_cmp_ps(x.lo, y.lo, kCompare)) |
                             _mm256_movemask_ps(_mm256_cmp_ps(x.hi, y.hi, kCompare)) << 8);
}
[[gnu::always_inline]] inline __m512 blend_floats(Mask16 mask, __m512 clear, __m512 set) {
  const Reals x = as<Reals>(clear), y = as<Reals>(set);
  Reals out;
  for (unsigned i = 0; i < 16; ++i) out.at[i] = mask >> i & 1u ? y.at[i] : x.at[i];
  return as<__m512>(out);
}
// vscalefps of one lane: x * 2^floor(n), rounded once (the product is exact in float64).
[[gnu::always_inline]] inline float scale_lane(float x, float n) {
  if (__builtin_isnan(x) || __builtin_isnan(n)) return __builtin_nanf("");
  if (__builtin_isinf(n)) {
    const float invalid = n > 0 ? 0.0f : __builtin_inff();  // 0 * inf, inf * 0
    if (__builtin_fabsf(x) == invalid) return __builtin_nanf("");
    return __builtin_copysignf(n > 0 ? __builtin_inff() : 0.0f, x);
  }
  const float limited = n < -400.0f ? -400.0f : n > 400.0f ? 400.0f : n;  // beyond, all is zero or infinite
  int whole = static_cast<int>(limited);
  if (static_cast<float>(whole) > limited) --whole;
  const auto power = __builtin_bit_cast(double, static_cast<std::uint64_t>(whole + 1023) << 52);
  return static_cast<float>(double{x} * power);
}
[[gnu::always_inline]] inline __m512 scale(__m512 a, __m512 b) {
  const Reals x = as<Reals>(a), n = as<Reals>(b);
  Reals out;
  for (unsigned i = 0; i < 16; ++i) out.at[i] = scale_lane(x.at[i], n.at[i]);
  return as<__m512>(out);
}
[[gnu::always_inline]] inline __m512 fused(__m512 a, __m512 b, __m512 c) {
  const Floats x = as<Floats>(a), y = as<Floats>(b), z = as<Floats>(c);
  return as<__m512>(Floats{_mm256_fmadd_ps(x.lo, y.lo, z.lo), _mm256_fmadd_ps(x.hi, y.hi, z.hi)});
}
[[gnu::always_inline]] inline __m512 absolute(__m512 a) {
  const Ints x = as<Ints>(a);
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  return as<__m512>(Ints{_mm256_and_si256(x.lo, magnitude), _mm256_and_si256(x.hi, magnitude)});
}

// ---- conversions ----
[[gnu::always_inline]] inline __m512i widen_signed(__m128i x) {
  return as<__m512i>(Ints{_mm256_cvtepi8_epi32(x), _mm256_cvtepi8_epi32(_mm_srli_si128(x, 8))});
}
[[gnu::always_inline]] inline __m512i widen_unsigned(__m128i x) {
  return as<__m512i>(Ints{_mm256_cvtepu8_epi32(x), _mm256_cvtepu8_epi32(_mm_srli_si128(x, 8))});
}
[[gnu::always_inline]] inline __m512i widen_words(__m256i x) {
  return as<__m512i>(Ints{_mm256_cvtepu16_epi32(_mm256_castsi256_si128(x)),
                          _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x, 1))});
}
[[gnu::always_inline]] inline __m512 widen_halves(__m256i x) {
  return as<__m512>(Floats{_mm256_cvtph_ps(_mm256_castsi256_si128(x)), _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1))});
}
template <int kRounding>
[[gnu::always_inline]] inline __m256i narrow_halves(__m512 a) {
  static_assert(kRounding == _MM_FROUND_TO_NEAREST_INT);
  const Floats x = as<Floats>(a);
  return _mm256_set_m128i(_mm256_cvtps_ph(x.hi, kRounding), _mm256_cvtps_ph(x.lo, kRounding));
}
[[gnu::always_inline]] inline __m512 to_floats(__m512i a) {
  const Ints x = as<Ints>(a);
  return as<__m512>(Floats{_mm256_cvtepi32_ps(x.lo), _mm256_cvtepi32_ps(x.hi)});
}
[[gnu::always_inline]] inline __m512i to_ints(__m512 a) {
  const Floats x = as<Floats>(a);
  return as<__m512i>(Ints{_mm256_cvtps_epi32(x.lo), _mm256_cvtps_epi32(x.hi)});
}

}  // namespace quern::kernels::software
