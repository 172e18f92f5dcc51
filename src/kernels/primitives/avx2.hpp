// Primitives of the AVX2 path (scalar.hpp defines them): sixteen lanes are two registers of eight,
// rows 0-7 and 8-15. Float lanes through xsimd where version 8.1 has the operation, intrinsics
// elsewhere.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <xsimd/xsimd.hpp>

namespace quern::kernels {

struct Avx2 {
  static constexpr const char* kName = "avx2";
  static constexpr int kTileLanes = 4;
  static constexpr const char* kDescription = "AVX2, FMA and F16C; byte products through pmaddubsw";

  // ---- float lanes ----
  using F = xsimd::batch<float, xsimd::fma3<xsimd::avx2>>;
  struct V16 {
    F lo, hi;
  };
  [[gnu::always_inline]] static V16 zero() { return {F(0.0f), F(0.0f)}; }
  [[gnu::always_inline]] static V16 set(float x) { return {F(x), F(x)}; }
  [[gnu::always_inline]] static V16 load(const float* p) {
    return {F::load_unaligned(p), F::load_unaligned(p + 8)};
  }
  [[gnu::always_inline]] static V16 load_n(const float* p, std::size_t n) {
    const __m256i hi = lanes_below(n, 8);
    return {_mm256_maskload_ps(p, lanes_below(n, 0)),
            n > 8 ? F(_mm256_maskload_ps(p + 8, hi)) : F(0.0f)};
  }
  [[gnu::always_inline]] static void store(float* p, V16 a) {
    a.lo.store_unaligned(p);
    a.hi.store_unaligned(p + 8);
  }
  [[gnu::always_inline]] static void store_n(float* p, V16 a, std::size_t n) {
    _mm256_maskstore_ps(p, lanes_below(n, 0), a.lo);
    if (n > 8) _mm256_maskstore_ps(p + 8, lanes_below(n, 8), a.hi);
  }
  [[gnu::always_inline]] static V16 load_f16(const std::uint16_t* p) {
    return {_mm256_cvtph_ps(load128(p)), _mm256_cvtph_ps(load128(p + 8))};
  }
  [[gnu::always_inline]] static V16 load_bf16(const std::uint16_t* p) {
    return {widen_bf16(load128(p)), widen_bf16(load128(p + 8))};
  }
  [[gnu::always_inline]] static V16 load_e4m3(const std::uint8_t* p) {
    const __m256i wide = _mm256_slli_epi16(_mm256_cvtepi8_epi16(load128(p)), 7);
    const __m256i bits = _mm256_and_si256(wide, _mm256_set1_epi16(static_cast<short>(0xbf80)));
    const F factor(256.0f);
    return {F(_mm256_cvtph_ps(_mm256_castsi256_si128(bits))) * factor,
            F(_mm256_cvtph_ps(_mm256_extracti128_si256(bits, 1))) * factor};
  }
  [[gnu::always_inline]] static void load_f16_pairs(const std::uint16_t* p, V16& even, V16& odd) {
    split_f16(p, even.lo, odd.lo);
    split_f16(p + 16, even.hi, odd.hi);
  }
  [[gnu::always_inline]] static void load_bf16_pairs(const std::uint16_t* p, V16& even, V16& odd) {
    split_bf16(p, even.lo, odd.lo);
    split_bf16(p + 16, even.hi, odd.hi);
  }
  [[gnu::always_inline]] static void store_f16(std::uint16_t* p, V16 a) {
    store128(p, _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
    store128(p + 8, _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
  }
  [[gnu::always_inline]] static V16 add(V16 a, V16 b) { return {a.lo + b.lo, a.hi + b.hi}; }
  [[gnu::always_inline]] static V16 sub(V16 a, V16 b) { return {a.lo - b.lo, a.hi - b.hi}; }
  [[gnu::always_inline]] static V16 mul(V16 a, V16 b) { return {a.lo * b.lo, a.hi * b.hi}; }
  [[gnu::always_inline]] static V16 div(V16 a, V16 b) { return {a.lo / b.lo, a.hi / b.hi}; }
  [[gnu::always_inline]] static V16 fma(V16 a, V16 b, V16 c) {
    return {xsimd::fma(a.lo, b.lo, c.lo), xsimd::fma(a.hi, b.hi, c.hi)};
  }
  [[gnu::always_inline]] static V16 max(V16 a, V16 b) {
    return {xsimd::max(a.lo, b.lo), xsimd::max(a.hi, b.hi)};
  }
  [[gnu::always_inline]] static V16 min(V16 a, V16 b) {
    return {xsimd::min(a.lo, b.lo), xsimd::min(a.hi, b.hi)};
  }
  [[gnu::always_inline]] static V16 abs(V16 a) {
    const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    return {_mm256_and_ps(a.lo, magnitude), _mm256_and_ps(a.hi, magnitude)};
  }
  [[gnu::always_inline]] static V16 select_less(V16 a, V16 b, V16 yes, V16 no) {
    return {_mm256_blendv_ps(no.lo, yes.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
            _mm256_blendv_ps(no.hi, yes.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
  }
  [[gnu::always_inline]] static float reduce_add(V16 a) {
    const __m256 eight = _mm256_add_ps(a.lo, a.hi);
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
  }
  [[gnu::always_inline]] static float reduce_max(V16 a) {
    const __m256 eight = _mm256_max_ps(a.lo, a.hi);
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
  }

  // ---- int32 lanes ----
  struct I16 {
    __m256i lo, hi;
  };
  [[gnu::always_inline]] static I16 izero() {
    return {_mm256_setzero_si256(), _mm256_setzero_si256()};
  }
  [[gnu::always_inline]] static I16 iset(std::int32_t x) {
    return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
  }
  [[gnu::always_inline]] static I16 iload(const std::int32_t* p) {
    return {load256(p), load256(p + 8)};
  }
  [[gnu::always_inline]] static void istore(std::int32_t* p, I16 a) {
    store256(p, a.lo);
    store256(p + 8, a.hi);
  }
  [[gnu::always_inline]] static I16 iadd(I16 a, I16 b) {
    return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
  }
  [[gnu::always_inline]] static I16 scale_ints(I16 a, std::int32_t s) {
    const __m256i factor = _mm256_set1_epi32(s & 0xffff);  // the upper halves multiply by zero
    return {_mm256_madd_epi16(a.lo, factor), _mm256_madd_epi16(a.hi, factor)};
  }
  [[gnu::always_inline]] static I16 iand(I16 a, I16 b) {
    return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
  }
  [[gnu::always_inline]] static I16 ior(I16 a, I16 b) {
    return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
  }
  template <int kShift>
  [[gnu::always_inline]] static I16 shift_left(I16 a) {
    return {_mm256_slli_epi32(a.lo, kShift), _mm256_slli_epi32(a.hi, kShift)};
  }
  template <int kShift>
  [[gnu::always_inline]] static I16 shift_right(I16 a) {
    return {_mm256_srli_epi32(a.lo, kShift), _mm256_srli_epi32(a.hi, kShift)};
  }
  [[gnu::always_inline]] static I16 float_bits(V16 a) {
    return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)};
  }
  [[gnu::always_inline]] static V16 bits_float(I16 a) {
    return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)};
  }
  [[gnu::always_inline]] static V16 to_float(I16 a) {
    return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)};
  }
  [[gnu::always_inline]] static I16 to_int(V16 a) {
    return {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)};
  }
  [[gnu::always_inline]] static V16 exp2i(I16 a) {
    return bits_float(shift_left<23>(iadd(a, iset(127))));
  }
  [[gnu::always_inline]] static std::int32_t ireduce_add(I16 a) {
    const __m256i eight = _mm256_add_epi32(a.lo, a.hi);
    __m128i x = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(x, _mm_shuffle_epi32(x, 0xb1)));
  }
  [[gnu::always_inline]] static void store_i8(std::int8_t* p, I16 a) {
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0xd8);
    store128(p, _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
  // Optional: 32 values in one go.
  [[gnu::always_inline]] static void store_codes(std::int8_t* p, I16 a, I16 b) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a.lo, a.hi), _mm256_packs_epi32(b.lo, b.hi));
    store256(p, _mm256_permutevar8x32_epi32(bytes, order));
  }
  [[gnu::always_inline]] static I16 load_i8(const std::int8_t* p) {
    const __m128i x = load128(p);
    return {_mm256_cvtepi8_epi32(x), _mm256_cvtepi8_epi32(_mm_srli_si128(x, 8))};
  }
  [[gnu::always_inline]] static I16 load_u8(const std::uint8_t* p) {
    const __m128i x = load128(p);
    return {_mm256_cvtepu8_epi32(x), _mm256_cvtepu8_epi32(_mm_srli_si128(x, 8))};
  }

  // ---- code lines ----
  struct Line {
    __m256i lo, hi;
  };
  [[gnu::always_inline]] static Line load_line(const std::byte* p) {
    return {load256(p), load256(p + 32)};
  }
  [[gnu::always_inline]] static void store_line(std::byte* p, Line w) {
    store256(p, w.lo);
    store256(p + 32, w.hi);
  }
  using Quad = __m256i;
  [[gnu::always_inline]] static Quad quad(const std::int8_t* a) {
    std::int32_t four;
    __builtin_memcpy(&four, a, 4);
    return _mm256_set1_epi32(four);
  }
  // |w| * (a with w's sign): pairs reach 128 * 127 * 2 = 32512, so the 16-bit sums never saturate.
  [[gnu::always_inline]] static I16 dot4(I16 acc, Line w, Quad a) {
    return {
        add_pairs(acc.lo, _mm256_maddubs_epi16(_mm256_abs_epi8(w.lo), _mm256_sign_epi8(a, w.lo))),
        add_pairs(acc.hi, _mm256_maddubs_epi16(_mm256_abs_epi8(w.hi), _mm256_sign_epi8(a, w.hi)))};
  }
  [[gnu::always_inline]] static I16 dot4(I16 acc, Line w, const std::int8_t* a) {
    return dot4(acc, w, quad(a));
  }
  [[gnu::always_inline]] static I16 dot4_unsigned(I16 acc, Line w, Quad a) {
    return {add_pairs(acc.lo, _mm256_maddubs_epi16(w.lo, a)),
            add_pairs(acc.hi, _mm256_maddubs_epi16(w.hi, a))};
  }
  // Optional: sums of unsigned products in 16 bits (the caller knows how many fit), half the work of sums in 32.
  static constexpr bool kWordSums = true;
  struct Words {
    __m256i lo, hi;
  };
  [[gnu::always_inline]] static Words word_products(Line w, Quad a) {
    return {_mm256_maddubs_epi16(w.lo, a), _mm256_maddubs_epi16(w.hi, a)};
  }
  [[gnu::always_inline]] static Words add_word_products(Words sum, Line w, Quad a) {
    const Words products = word_products(w, a);
    return {in_register(_mm256_add_epi16(sum.lo, products.lo)), in_register(_mm256_add_epi16(sum.hi, products.hi))};
  }
  [[gnu::always_inline]] static I16 add_words(I16 acc, Words sum) {
    return {add_pairs(acc.lo, sum.lo), add_pairs(acc.hi, sum.hi)};
  }
  static constexpr std::int32_t kBias = 0;
  [[gnu::always_inline]] static Line bias_line(Line w) { return w; }
  [[gnu::always_inline]] static I16 dot4_biased(I16 acc, Line w, Quad a) { return dot4(acc, w, a); }

  // ---- packed code lines ----
  [[gnu::always_inline]] static Line low_nibbles(Line w) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(w.lo, mask), _mm256_and_si256(w.hi, mask)};
  }
  [[gnu::always_inline]] static Line high_nibbles(Line w) {
    return low_nibbles({_mm256_srli_epi16(w.lo, 4), _mm256_srli_epi16(w.hi, 4)});
  }
  [[gnu::always_inline]] static Line or_line(Line a, Line b) {
    return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
  }
  template <int kPair>
  [[gnu::always_inline]] static Line bit_pair(Line w) {
    return {bit_pair_half<kPair>(w.lo), bit_pair_half<kPair>(w.hi)};
  }
  [[gnu::always_inline]] static Line bit_line(const std::byte* p, std::int8_t value) {
    return {bit_bytes(p, value), bit_bytes(p + 4, value)};
  }
  [[gnu::always_inline]] static Line row_low_nibbles(const std::byte* p) {
    return spread_rows(_mm_and_si128(load128(p), _mm_set1_epi8(15)));
  }
  [[gnu::always_inline]] static Line row_high_nibbles(const std::byte* p) {
    return spread_rows(_mm_and_si128(_mm_srli_epi16(load128(p), 4), _mm_set1_epi8(15)));
  }

  // ---- tables of bytes ----
  [[gnu::always_inline]] static Line lookup16(const std::int8_t* table, Line index) {
    const __m256i both = _mm256_broadcastsi128_si256(load128(table));
    return {_mm256_shuffle_epi8(both, index.lo), _mm256_shuffle_epi8(both, index.hi)};
  }
  // 16-bit lanes of s << 4: pmulhrsw of (a << 8) and (s << 4) is (a * s * 4096 + 16384) >> 15.
  struct ScaleLine {
    __m256i lo, hi;
  };
  [[gnu::always_inline]] static ScaleLine scale_line(Line s) {
    const __m256i mask = _mm256_set1_epi16(static_cast<short>(0xfff0));
    return {_mm256_and_si256(_mm256_srai_epi16(s.lo, 4), mask),
            _mm256_and_si256(_mm256_srai_epi16(s.hi, 4), mask)};
  }
  [[gnu::always_inline]] static Line scale_eighths(Line a, ScaleLine s) {
    return {scale_half(a.lo, s.lo), scale_half(a.hi, s.hi)};
  }
  static constexpr bool kHasLookup256 = false;
  // dot4(acc, scale_eighths(codes, s), a) without packing the products to bytes again: words
  // throughout.
  static constexpr bool kHasDotEighths = true;
  [[gnu::always_inline]] static I16 dot4_eighths(I16 acc, Line codes, ScaleLine s, Quad a) {
    const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(a, 8), 8),
                  odd = _mm256_srai_epi16(a, 8);
    return {_mm256_add_epi32(acc.lo, dot_half(codes.lo, s.lo, even, odd)),
            _mm256_add_epi32(acc.hi, dot_half(codes.hi, s.hi, even, odd))};
  }

  [[gnu::always_inline]] static void prefetch(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
  }

  // ---- plain loads and stores ----
  [[gnu::always_inline]] static __m256i load256(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  }
  [[gnu::always_inline]] static void store256(void* p, __m256i x) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), x);
  }
  [[gnu::always_inline]] static __m128i load128(const void* p) {
    return _mm_loadu_si128(static_cast<const __m128i*>(p));
  }
  [[gnu::always_inline]] static void store128(void* p, __m128i x) {
    _mm_storeu_si128(static_cast<__m128i*>(p), x);
  }

 private:
  // Keeps gcc 12 from making all products of a tile before the first sum, whose registers then spill.
  [[gnu::always_inline]] static __m256i in_register(__m256i sum) {
    __asm__("" : "+x"(sum));
    return sum;
  }
  [[gnu::always_inline]] static __m256i add_pairs(__m256i acc, __m256i pairs) {
    return in_register(_mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))));
  }
  [[gnu::always_inline]] static __m256i dot_half(__m256i codes, __m256i s, __m256i even,
                                                 __m256i odd) {
    const __m256i odd_bytes = _mm256_set1_epi16(static_cast<short>(0xff00));
    const __m256i w_even = _mm256_mulhrs_epi16(_mm256_slli_epi16(codes, 8), s);
    const __m256i w_odd = _mm256_mulhrs_epi16(_mm256_and_si256(codes, odd_bytes), s);
    return _mm256_add_epi32(_mm256_madd_epi16(w_even, even), _mm256_madd_epi16(w_odd, odd));
  }
  [[gnu::always_inline]] static __m256i scale_half(__m256i a, __m256i s) {
    const __m256i odd_bytes = _mm256_set1_epi16(static_cast<short>(0xff00));
    const __m256i even = _mm256_mulhrs_epi16(_mm256_slli_epi16(a, 8), s);
    const __m256i odd = _mm256_mulhrs_epi16(_mm256_and_si256(a, odd_bytes), s);
    return _mm256_blendv_epi8(even, _mm256_slli_epi16(odd, 8), odd_bytes);
  }
  // All ones in lane i where first + i < n.
  [[gnu::always_inline]] static __m256i lanes_below(std::size_t n, int first) {
    const __m256i lanes =
        _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lanes);
  }
  [[gnu::always_inline]] static F widen_bf16(__m128i x) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
  }
  [[gnu::always_inline]] static void split_bf16(const std::uint16_t* p, F& even, F& odd) {
    const __m256i x = load256(p);
    even = _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
    odd =
        _mm256_castsi256_ps(_mm256_and_si256(x, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  [[gnu::always_inline]] static void split_f16(const std::uint16_t* p, F& even, F& odd) {
    // Per 128-bit lane: the four even halves first, then the four odd ones; then even | odd.
    const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0,
                                           1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    const __m256i x = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(load256(p), order), 0xd8);
    even = _mm256_cvtph_ps(_mm256_castsi256_si128(x));
    odd = _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1));
  }
  template <int kPair>
  [[gnu::always_inline]] static __m256i bit_pair_half(__m256i w) {
    const __m256i moved = kPair <= 2 ? _mm256_slli_epi16(w, kPair <= 2 ? 4 - 2 * kPair : 0)
                                     : _mm256_srli_epi16(w, 2);
    return _mm256_and_si256(moved, _mm256_set1_epi8(0x30));
  }
  [[gnu::always_inline]] static __m256i bit_bytes(const std::byte* p, std::int8_t value) {
    std::int32_t bits;
    __builtin_memcpy(&bits, p, 4);
    const __m256i from =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i select = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201u));
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), from);
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(bytes, select), select),
                            _mm256_set1_epi8(value));
  }
  // Byte r -> bytes 4r..4r+3.
  [[gnu::always_inline]] static Line spread_rows(__m128i x) {
    const __m256i both = _mm256_broadcastsi128_si256(x);
    const __m256i from = _mm256_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4,
                                          4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7);
    return {_mm256_shuffle_epi8(both, from),
            _mm256_shuffle_epi8(both, _mm256_add_epi8(from, _mm256_set1_epi8(8)))};
  }
};

}  // namespace quern::kernels
