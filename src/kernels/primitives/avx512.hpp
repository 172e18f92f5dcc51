// Primitives of the AVX-512 paths (scalar.hpp defines them): sixteen lanes are one register.
// Written once for both tags, with the tag in every symbol, because the two are compiled with
// different flags. Avx512 itself: F, BW, DQ, VL without VNNI; byte dot products through pmaddubsw.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <xsimd/xsimd.hpp>

namespace quern::kernels {

template <class Tag>
struct Avx512Lanes {
  // ---- float lanes ----
  using V16 = xsimd::batch<float, xsimd::avx512bw>;
  [[gnu::always_inline]] static V16 zero() { return V16(0.0f); }
  [[gnu::always_inline]] static V16 set(float x) { return V16(x); }
  [[gnu::always_inline]] static V16 load(const float* p) { return V16::load_unaligned(p); }
  [[gnu::always_inline]] static V16 load_n(const float* p, std::size_t n) {
    return _mm512_maskz_loadu_ps(lanes_below(n), p);
  }
  [[gnu::always_inline]] static void store(float* p, V16 a) { a.store_unaligned(p); }
  [[gnu::always_inline]] static void store_n(float* p, V16 a, std::size_t n) {
    _mm512_mask_storeu_ps(p, lanes_below(n), a);
  }
  [[gnu::always_inline]] static V16 load_f16(const std::uint16_t* p) {
    return _mm512_cvtph_ps(load256(p));
  }
  [[gnu::always_inline]] static V16 load_bf16(const std::uint16_t* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load256(p)), 16));
  }
  [[gnu::always_inline]] static V16 load_e4m3(const std::uint8_t* p) {
    const __m256i wide = _mm256_slli_epi16(_mm256_cvtepi8_epi16(load128(p)), 7);
    const __m256i bits = _mm256_and_si256(wide, _mm256_set1_epi16(static_cast<short>(0xbf80)));
    return mul(_mm512_cvtph_ps(bits), set(256.0f));
  }
  [[gnu::always_inline]] static void load_f16_pairs(const std::uint16_t* p, V16& even, V16& odd) {
    const __m512i x = load512(p);
    even = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(x));
    odd = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(x, 16)));
  }
  [[gnu::always_inline]] static void load_bf16_pairs(const std::uint16_t* p, V16& even, V16& odd) {
    const __m512i x = load512(p);
    even = _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
    odd =
        _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  [[gnu::always_inline]] static void store_f16(std::uint16_t* p, V16 a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
  }
  [[gnu::always_inline]] static V16 add(V16 a, V16 b) { return a + b; }
  [[gnu::always_inline]] static V16 sub(V16 a, V16 b) { return a - b; }
  [[gnu::always_inline]] static V16 mul(V16 a, V16 b) { return a * b; }
  [[gnu::always_inline]] static V16 div(V16 a, V16 b) { return a / b; }
  // xsimd 8.1 has no fused form for AVX-512.
  [[gnu::always_inline]] static V16 fma(V16 a, V16 b, V16 c) { return _mm512_fmadd_ps(a, b, c); }
  [[gnu::always_inline]] static V16 max(V16 a, V16 b) { return xsimd::max(a, b); }
  [[gnu::always_inline]] static V16 min(V16 a, V16 b) { return xsimd::min(a, b); }
  [[gnu::always_inline]] static V16 abs(V16 a) { return _mm512_abs_ps(a); }
  [[gnu::always_inline]] static V16 select_less(V16 a, V16 b, V16 yes, V16 no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
  }
  [[gnu::always_inline]] static float reduce_add(V16 a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
  }
  [[gnu::always_inline]] static float reduce_max(V16 a) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
  }

  // Of eight vectors, largest lane of vector b in lane b; nothing in the lanes above. No NaN.
  [[gnu::always_inline]] static V16 reduce_max8(const V16 (&a)[8]) {
    const __m512 all[8] = {a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]};
    return reduce8(all, [](__m512 x, __m512 y) __attribute__((always_inline)) { return _mm512_max_ps(x, y); });
  }
  // x * 2^n, whole n, rounded once.
  [[gnu::always_inline]] static V16 times_power(V16 x, V16 n) { return _mm512_scalef_ps(x, n); }

  // ---- int32 lanes ----
  // Typed as int lanes: with __m512i (long lanes) gcc 12 copies every accumulator around every
  // vpdpbusd.
  struct I16 {
    typedef int Lanes __attribute__((vector_size(64)));
    Lanes lanes;
    I16() = default;
    [[gnu::always_inline]] I16(__m512i x) : lanes(reinterpret_cast<Lanes>(x)) {}
    [[gnu::always_inline]] operator __m512i() const { return reinterpret_cast<__m512i>(lanes); }
  };
  [[gnu::always_inline]] static I16 izero() { return {_mm512_setzero_si512()}; }
  [[gnu::always_inline]] static I16 iset(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
  [[gnu::always_inline]] static I16 iload(const std::int32_t* p) { return {load512(p)}; }
  [[gnu::always_inline]] static void istore(std::int32_t* p, I16 a) { _mm512_storeu_si512(p, a); }
  [[gnu::always_inline]] static I16 iadd(I16 a, I16 b) { return {_mm512_add_epi32(a, b)}; }
  [[gnu::always_inline]] static I16 iand(I16 a, I16 b) { return {_mm512_and_si512(a, b)}; }
  [[gnu::always_inline]] static I16 ior(I16 a, I16 b) { return {_mm512_or_si512(a, b)}; }
  template <int kShift>
  [[gnu::always_inline]] static I16 shift_left(I16 a) {
    return {_mm512_slli_epi32(a, kShift)};
  }
  [[gnu::always_inline]] static I16 scale_ints(I16 a, std::int32_t s) {
    // The upper halves multiply by zero.
    return {_mm512_madd_epi16(a, _mm512_set1_epi32(s & 0xffff))};
  }
  template <int kShift>
  [[gnu::always_inline]] static I16 shift_right(I16 a) {
    return {_mm512_srli_epi32(a, kShift)};
  }
  [[gnu::always_inline]] static I16 float_bits(V16 a) { return {_mm512_castps_si512(a)}; }
  [[gnu::always_inline]] static V16 bits_float(I16 a) { return _mm512_castsi512_ps(a); }
  [[gnu::always_inline]] static V16 to_float(I16 a) { return _mm512_cvtepi32_ps(a); }
  [[gnu::always_inline]] static I16 to_int(V16 a) { return {_mm512_cvtps_epi32(a)}; }
  [[gnu::always_inline]] static V16 exp2i(I16 a) {
    return bits_float(shift_left<23>(iadd(a, iset(127))));
  }
  [[gnu::always_inline]] static std::int32_t ireduce_add(I16 a) {
    return _mm512_reduce_add_epi32(a);
  }
  // Of eight vectors, sum of the lanes of vector b in lane b; nothing in the lanes above.
  [[gnu::always_inline]] static I16 ireduce_add8(const I16 (&a)[8]) {
    __m512 all[8];
    for (int i = 0; i < 8; ++i) all[i] = _mm512_castsi512_ps(a[i]);
    const auto add = [](__m512 x, __m512 y) __attribute__((always_inline)) {
      return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x), _mm512_castps_si512(y)));
    };
    return {_mm512_castps_si512(reduce8(all, add))};
  }
  [[gnu::always_inline]] static void store_i8(std::int8_t* p, I16 a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
  }
  [[gnu::always_inline]] static I16 load_i8(const std::int8_t* p) {
    return {_mm512_cvtepi8_epi32(load128(p))};
  }
  [[gnu::always_inline]] static I16 load_u8(const std::uint8_t* p) {
    return {_mm512_cvtepu8_epi32(load128(p))};
  }

  // ---- code lines and packed code lines ----
  struct Line {
    __m512i v;
  };
  [[gnu::always_inline]] static Line load_line(const std::byte* p) { return {load512(p)}; }
  [[gnu::always_inline]] static void store_line(std::byte* p, Line w) {
    _mm512_storeu_si512(p, w.v);
  }
  using Quad = __m512i;
  [[gnu::always_inline]] static Quad quad(const std::int8_t* a) {
    std::int32_t four;
    __builtin_memcpy(&four, a, 4);
    return _mm512_set1_epi32(four);
  }
  [[gnu::always_inline]] static Line low_nibbles(Line w) {
    return {_mm512_and_si512(w.v, _mm512_set1_epi8(15))};
  }
  [[gnu::always_inline]] static Line high_nibbles(Line w) {
    return low_nibbles({_mm512_srli_epi16(w.v, 4)});
  }
  [[gnu::always_inline]] static Line or_line(Line a, Line b) { return {_mm512_or_si512(a.v, b.v)}; }
  template <int kPair>
  [[gnu::always_inline]] static Line bit_pair(Line w) {
    const __m512i moved = kPair <= 2 ? _mm512_slli_epi16(w.v, kPair <= 2 ? 4 - 2 * kPair : 0)
                                     : _mm512_srli_epi16(w.v, 2);
    return {_mm512_and_si512(moved, _mm512_set1_epi8(0x30))};
  }
  [[gnu::always_inline]] static Line bit_line(const std::byte* p, std::int8_t value) {
    std::uint64_t bits;
    __builtin_memcpy(&bits, p, 8);
    return {_mm512_maskz_set1_epi8(bits, value)};
  }
  [[gnu::always_inline]] static Line row_low_nibbles(const std::byte* p) {
    return spread_rows(_mm_and_si128(load128(p), _mm_set1_epi8(15)));
  }
  [[gnu::always_inline]] static Line row_high_nibbles(const std::byte* p) {
    return spread_rows(_mm_and_si128(_mm_srli_epi16(load128(p), 4), _mm_set1_epi8(15)));
  }

  // ---- tables of bytes ----
  [[gnu::always_inline]] static Line lookup16(const std::int8_t* table, Line index) {
    return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(load128(table)), index.v)};
  }
  // 16-bit lanes of s << 4: pmulhrsw of (a << 8) and (s << 4) is (a * s * 4096 + 16384) >> 15.
  struct ScaleLine {
    __m512i v;
  };
  [[gnu::always_inline]] static ScaleLine scale_line(Line s) {
    return {
        _mm512_and_si512(_mm512_srai_epi16(s.v, 4), _mm512_set1_epi16(static_cast<short>(0xfff0)))};
  }
  [[gnu::always_inline]] static Line scale_eighths(Line a, ScaleLine s) {
    const __m512i odd_bytes = _mm512_set1_epi16(static_cast<short>(0xff00));
    const __m512i even = _mm512_mulhrs_epi16(_mm512_slli_epi16(a.v, 8), s.v);
    const __m512i odd = _mm512_mulhrs_epi16(_mm512_and_si512(a.v, odd_bytes), s.v);
    return {_mm512_mask_mov_epi8(even, 0xaaaaaaaaaaaaaaaau, _mm512_slli_epi16(odd, 8))};
  }

  [[gnu::always_inline]] static void prefetch(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
  }

  // ---- plain loads ----
  [[gnu::always_inline]] static __m512i load512(const void* p) { return _mm512_loadu_si512(p); }
  [[gnu::always_inline]] static __m256i load256(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  }
  [[gnu::always_inline]] static __m128i load128(const void* p) {
    return _mm_loadu_si128(static_cast<const __m128i*>(p));
  }

 private:
  // join() of the lanes of vector b in lane b, in any order.
  template <class Join>
  [[gnu::always_inline]] static __m512 reduce8(const __m512 (&a)[8], Join join) {
    __m512 pairs[4], quads[2];
    for (int i = 0; i < 4; ++i)  // lanes 2i, 2i+1 of four: x y x y
      pairs[i] = join(_mm512_unpacklo_ps(a[2 * i], a[2 * i + 1]), _mm512_unpackhi_ps(a[2 * i], a[2 * i + 1]));
    for (int i = 0; i < 2; ++i)
      quads[i] = join(_mm512_shuffle_ps(pairs[2 * i], pairs[2 * i + 1], 0x44),
                      _mm512_shuffle_ps(pairs[2 * i], pairs[2 * i + 1], 0xee));
    const __m512 halves = join(_mm512_shuffle_f32x4(quads[0], quads[1], 0x44),
                               _mm512_shuffle_f32x4(quads[0], quads[1], 0xee));
    // 128-bit lanes 0, 1: the first four twice; 2, 3: the others.
    const __m512 eight = join(halves, _mm512_shuffle_f32x4(halves, halves, 0xb1));
    return _mm512_shuffle_f32x4(eight, eight, 0x08);
  }
  [[gnu::always_inline]] static __mmask16 lanes_below(std::size_t n) {
    return static_cast<__mmask16>((1u << n) - 1u);
  }
  // Byte r -> bytes 4r..4r+3.
  [[gnu::always_inline]] static Line spread_rows(__m128i x) {
    const __m512i rows = _mm512_set_epi64(
        0x0f0f0f0f0e0e0e0e, 0x0d0d0d0d0c0c0c0c, 0x0b0b0b0b0a0a0a0a, 0x0909090908080808,
        0x0707070706060606, 0x0505050504040404, 0x0303030302020202, 0x0101010100000000);
    return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(x), rows)};
  }

 protected:
  // The bytes at p the same way; the broadcast is a load.
  [[gnu::always_inline]] static Line rows_of(const std::byte* p) { return spread_rows(load128(p)); }
};

struct Avx512 : Avx512Lanes<Avx512> {
  static constexpr const char* kName = "avx512";
  static constexpr int kTileLanes = 24;
  static constexpr const char* kDescription =
      "AVX-512 F, BW, DQ, VL; byte products through pmaddubsw";

  // |w| * (a with w's sign): pairs reach 128 * 127 * 2 = 32512, so the 16-bit sums never saturate.
  [[gnu::always_inline]] static I16 dot4(I16 acc, Line w, Quad a) {
    const __m512i signed_a =
        _mm512_mask_sub_epi8(a, _mm512_movepi8_mask(w.v), _mm512_setzero_si512(), a);
    return add_pairs(acc, _mm512_maddubs_epi16(_mm512_abs_epi8(w.v), signed_a));
  }
  [[gnu::always_inline]] static I16 dot4(I16 acc, Line w, const std::int8_t* a) {
    return dot4(acc, w, quad(a));
  }
  [[gnu::always_inline]] static I16 dot4_unsigned(I16 acc, Line w, Quad a) {
    return add_pairs(acc, _mm512_maddubs_epi16(w.v, a));
  }
  static constexpr std::int32_t kBias = 0;
  [[gnu::always_inline]] static Line bias_line(Line w) { return w; }
  [[gnu::always_inline]] static I16 dot4_biased(I16 acc, Line w, Quad a) { return dot4(acc, w, a); }
  static constexpr bool kHasLookup256 = false;
  // dot4(acc, scale_eighths(codes, s), a) without packing the products to bytes again: words
  // throughout.
  static constexpr bool kHasDotEighths = true;
  [[gnu::always_inline]] static I16 dot4_eighths(I16 acc, Line codes, ScaleLine s, Quad a) {
    const __m512i odd_bytes = _mm512_set1_epi16(static_cast<short>(0xff00));
    const __m512i even = _mm512_mulhrs_epi16(_mm512_slli_epi16(codes.v, 8), s.v);
    const __m512i odd = _mm512_mulhrs_epi16(_mm512_and_si512(codes.v, odd_bytes), s.v);
    const __m512i a_even = _mm512_srai_epi16(_mm512_slli_epi16(a, 8), 8),
                  a_odd = _mm512_srai_epi16(a, 8);
    const __m512i sums =
        _mm512_add_epi32(_mm512_madd_epi16(even, a_even), _mm512_madd_epi16(odd, a_odd));
    return {_mm512_add_epi32(acc, sums)};
  }

 private:
  [[gnu::always_inline]] static I16 add_pairs(I16 acc, __m512i pairs) {
    return {_mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))};
  }
};

}  // namespace quern::kernels
