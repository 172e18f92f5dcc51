// Primitives of the AVX-VNNI path (Alder Lake and later without AVX-512, Sierra Forest, Zen 5): AVX2 with
// byte dot products through the VEX form of vpdpbusd, whose weights are unsigned, so that signed codes are
// stored with a bias of 128 (scalar.hpp: kBias). `Dot` is the instruction; tests put an exact AVX2 form of it
// in its place where the CPU lacks it.
#pragma once

#include "kernels/primitives/avx2.hpp"

namespace quern::kernels {

template <class Dot>
struct AvxVnniOf : Avx2 {
  static constexpr const char* kName = Dot::kName;
  static constexpr const char* kDescription = "AVX2 with VNNI; byte products through vpdpbusd";

  [[gnu::always_inline]] static I16 dot4(I16 acc, Line w, Quad a) {
    return {Dot::dpbusd(acc.lo, _mm256_abs_epi8(w.lo), _mm256_sign_epi8(a, w.lo)),
            Dot::dpbusd(acc.hi, _mm256_abs_epi8(w.hi), _mm256_sign_epi8(a, w.hi))};
  }
  [[gnu::always_inline]] static I16 dot4(I16 acc, Line w, const std::int8_t* a) {
    return dot4(acc, w, quad(a));
  }
  [[gnu::always_inline]] static I16 dot4_unsigned(I16 acc, Line w, Quad a) {
    return {Dot::dpbusd(acc.lo, w.lo, a), Dot::dpbusd(acc.hi, w.hi, a)};
  }
  static constexpr bool kWordSums = false;  // vpdpbusd sums in 32 bits for nothing
  static constexpr std::int32_t kBias = 128;
  [[gnu::always_inline]] static Line bias_line(Line w) {
    const __m256i bias = _mm256_set1_epi8(-128);
    return {_mm256_xor_si256(w.lo, bias), _mm256_xor_si256(w.hi, bias)};
  }
  [[gnu::always_inline]] static I16 dot4_biased(I16 acc, Line w, Quad a) {
    return dot4_unsigned(acc, w, a);
  }
  // Optional: unsigned activations beside signed weights (attention_integer.hpp).
  static constexpr bool kUnsignedShares = true;
  [[gnu::always_inline]] static I16 dot4_shares(I16 acc, Line w, Quad shares) {
    return {Dot::dpbusd(acc.lo, shares, w.lo), Dot::dpbusd(acc.hi, shares, w.hi)};
  }
  [[gnu::always_inline]] static void store_u8(std::uint8_t* p, I16 a) {  // values in [0, 255]
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0xd8);
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  }
  [[gnu::always_inline]] static void store_codes(std::uint8_t* p, I16 a, I16 b) {  // 32 of them
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(a.lo, a.hi), _mm256_packs_epi32(b.lo, b.hi));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permutevar8x32_epi32(bytes, order));
  }

  static constexpr bool kHasDotEighths = false;
};

#ifdef __AVXVNNI__
struct Vpdpbusd {
  static constexpr const char* kName = "avxvnni";
  [[gnu::always_inline]] static __m256i dpbusd(__m256i acc, __m256i unsigned_bytes, __m256i signed_bytes) {
    return _mm256_dpbusd_avx_epi32(acc, unsigned_bytes, signed_bytes);
  }
};
using AvxVnni = AvxVnniOf<Vpdpbusd>;
#endif

}  // namespace quern::kernels
