// The names of AVX-512 intrinsics and of xsimd's batch for it, given to software (avx512_software.hpp): what is
// included after this header, src/kernels/primitives/avx512*.hpp, is compiled as it stands for a CPU with AVX2.
// An intrinsic that is not listed here does not compile: add it below.
#pragma once

#include <xsimd/xsimd.hpp>

#include "kernels/emulated/avx512_software.hpp"
#include "kernels/emulated/avx512bf16_software.hpp"

#ifdef __AVX512F__
#error "with these flags the compiler has the instructions themselves"
#endif

// A call of an AVX2 intrinsic for each half.
#define QUERN_INLINE __attribute__((always_inline))
#define QUERN_ONE(name, a) ::quern::kernels::software::ints([](__m256i x_) QUERN_INLINE { return name(x_); }, a)
#define QUERN_TWO(name, a, b) \
  ::quern::kernels::software::ints([](__m256i x_, __m256i y_) QUERN_INLINE { return name(x_, y_); }, a, b)
#define QUERN_SHIFT(name, a, n) ::quern::kernels::software::ints([](__m256i x_) QUERN_INLINE { return name(x_, n); }, a)
#define QUERN_FLOATS(name, a, b) \
  ::quern::kernels::software::floats([](__m256 x_, __m256 y_) QUERN_INLINE { return name(x_, y_); }, a, b)

// ---- memory, constants, casts ----
#define _mm512_loadu_si512(p) ::quern::kernels::software::load(p)
#define _mm512_storeu_si512(p, a) ::quern::kernels::software::store(p, a)
#define _mm512_maskz_loadu_ps(m, p) ::quern::kernels::software::load_or_zero(m, p)
#define _mm512_mask_storeu_ps(p, m, a) ::quern::kernels::software::store_some(p, m, a)
#define _mm512_setzero_si512() ::quern::kernels::software::zero()
#define _mm512_set1_epi8(x) ::quern::kernels::software::set1_epi8(x)
#define _mm512_set1_epi16(x) ::quern::kernels::software::set1_epi16(x)
#define _mm512_set1_epi32(x) ::quern::kernels::software::set1_epi32(x)
#define _mm512_set_epi64(...) ::quern::kernels::software::set_epi64(__VA_ARGS__)
#define _mm512_broadcast_i32x4(x) ::quern::kernels::software::broadcast_i32x4(x)
#define _mm512_castps_si512(a) ::quern::kernels::software::as<__m512i>(static_cast<__m512>(a))
#define _mm512_castsi512_ps(a) ::quern::kernels::software::as<__m512>(static_cast<__m512i>(a))
#define _mm512_castsi512_si256(a) ::quern::kernels::software::as<::quern::kernels::software::Ints>(static_cast<__m512i>(a)).lo
#define _mm512_castps512_ps256(a) ::quern::kernels::software::as<::quern::kernels::software::Floats>(static_cast<__m512>(a)).lo
#define _mm512_extractf32x8_ps(a, n) \
  ((n) != 0 ? ::quern::kernels::software::as<::quern::kernels::software::Floats>(static_cast<__m512>(a)).hi \
            : _mm512_castps512_ps256(a))

// ---- integers ----
#define _mm512_and_si512(a, b) QUERN_TWO(_mm256_and_si256, a, b)
#define _mm512_or_si512(a, b) QUERN_TWO(_mm256_or_si256, a, b)
#define _mm512_xor_si512(a, b) QUERN_TWO(_mm256_xor_si256, a, b)
#define _mm512_ternarylogic_epi32(a, b, c, table) ::quern::kernels::software::ternary<table>(a, b, c)
#define _mm512_add_epi32(a, b) QUERN_TWO(_mm256_add_epi32, a, b)
#define _mm512_sub_epi32(a, b) QUERN_TWO(_mm256_sub_epi32, a, b)
#define _mm512_madd_epi16(a, b) QUERN_TWO(_mm256_madd_epi16, a, b)
#define _mm512_maddubs_epi16(a, b) QUERN_TWO(_mm256_maddubs_epi16, a, b)
#define _mm512_mulhrs_epi16(a, b) QUERN_TWO(_mm256_mulhrs_epi16, a, b)
#define _mm512_shuffle_epi8(a, b) QUERN_TWO(_mm256_shuffle_epi8, a, b)
#define _mm512_abs_epi8(a) QUERN_ONE(_mm256_abs_epi8, a)
#define _mm512_slli_epi16(a, n) QUERN_SHIFT(_mm256_slli_epi16, a, n)
#define _mm512_srli_epi16(a, n) QUERN_SHIFT(_mm256_srli_epi16, a, n)
#define _mm512_srai_epi16(a, n) QUERN_SHIFT(_mm256_srai_epi16, a, n)
#define _mm512_slli_epi32(a, n) QUERN_SHIFT(_mm256_slli_epi32, a, n)
#define _mm512_srli_epi32(a, n) QUERN_SHIFT(_mm256_srli_epi32, a, n)
#define _mm512_dpbusd_epi32(acc, u, s) ::quern::kernels::software::dot_bytes(acc, u, s)
#define _mm512_reduce_add_epi32(a) ::quern::kernels::software::sum_words(a)
#define _mm512_permutexvar_epi8(index, a) ::quern::kernels::software::permute_bytes(index, a)
#define _mm512_permutex2var_epi8(a, index, b) ::quern::kernels::software::permute_bytes2(a, index, b)
#define _mm512_permutexvar_epi16(index, a) ::quern::kernels::software::permute_words(index, a)
#define _mm512_unpacklo_epi8(a, b) QUERN_TWO(_mm256_unpacklo_epi8, a, b)
#define _mm512_unpackhi_epi8(a, b) QUERN_TWO(_mm256_unpackhi_epi8, a, b)

// ---- pairs of bf16 ----
#define _mm512_dpbf16_ps(sum, a, b) \
  ::quern::kernels::software::dot_bf16(sum, ::quern::kernels::software::as<__m512i>(a), ::quern::kernels::software::as<__m512i>(b))
#define _mm512_cvtne2ps_pbh(high, low) ::quern::kernels::software::narrow_two(high, low)
#define _mm512_cvtneps_pbh(a) ::quern::kernels::software::narrow_one(a)

// ---- under masks ----
#define _mm512_movepi8_mask(a) ::quern::kernels::software::signs(a)
#define _kand_mask64(a, b) ((a) & (b))
#define _kandn_mask64(a, b) (~(a) & (b))
#define _mm512_mask_blend_epi8(m, a, b) ::quern::kernels::software::blend(m, a, b)
#define _mm512_mask_mov_epi8(old, m, a) ::quern::kernels::software::blend(m, old, a)
#define _mm512_maskz_set1_epi8(m, x) \
  ::quern::kernels::software::blend(m, ::quern::kernels::software::zero(), ::quern::kernels::software::set1_epi8(x))
#define _mm512_mask_sub_epi8(old, m, a, b) \
  ::quern::kernels::software::blend(m, old, QUERN_TWO(_mm256_sub_epi8, a, b))
#define _mm512_mask_permutexvar_epi8(old, m, index, a) \
  ::quern::kernels::software::blend(m, old, ::quern::kernels::software::permute_bytes(index, a))
#define _mm512_cmp_ps_mask(a, b, how) ::quern::kernels::software::compare<how>(a, b)
#define _mm512_mask_blend_ps(m, a, b) ::quern::kernels::software::blend_floats(m, a, b)

// ---- conversions ----
#define _mm512_cvtepi8_epi32(x) ::quern::kernels::software::widen_signed(x)
#define _mm512_cvtepu8_epi32(x) ::quern::kernels::software::widen_unsigned(x)
#define _mm512_cvtepu16_epi32(x) ::quern::kernels::software::widen_words(x)
#define _mm512_cvtepi32_epi16(a) ::quern::kernels::software::cut_to_16(a)
#define _mm512_cvtepi32_epi8(a) ::quern::kernels::software::cut_to_8(a)
#define _mm512_cvtepi32_ps(a) ::quern::kernels::software::to_floats(a)
#define _mm512_cvtps_epi32(a) ::quern::kernels::software::to_ints(a)
#define _mm512_cvtph_ps(x) ::quern::kernels::software::widen_halves(x)
#define _mm512_cvtps_ph(a, how) ::quern::kernels::software::narrow_halves<how>(a)

// ---- floats ----
#define _mm512_max_ps(a, b) QUERN_FLOATS(_mm256_max_ps, a, b)
#define _mm512_fmadd_ps(a, b, c) ::quern::kernels::software::fused(a, b, c)
#define _mm512_abs_ps(a) ::quern::kernels::software::absolute(a)
#define _mm512_scalef_ps(a, b) ::quern::kernels::software::scale(a, b)
#define _mm512_unpacklo_ps(a, b) QUERN_FLOATS(_mm256_unpacklo_ps, a, b)
#define _mm512_unpackhi_ps(a, b) QUERN_FLOATS(_mm256_unpackhi_ps, a, b)
#define _mm512_shuffle_ps(a, b, order) \
  ::quern::kernels::software::floats( \
      [](__m256 x_, __m256 y_) QUERN_INLINE { return _mm256_shuffle_ps(x_, y_, order); }, a, b)
#define _mm512_shuffle_f32x4(a, b, order) ::quern::kernels::software::shuffle_quarters<order>(a, b)

// ---- xsimd ----
namespace xsimd {

template <>
class batch<float, avx512bw> {
 public:
  batch() = default;
  [[gnu::always_inline]] explicit batch(float x) {
    for (float& lane : lanes_.at) lane = x;
  }
  [[gnu::always_inline]] batch(__m512 x) : lanes_(quern::kernels::software::as<Lanes>(x)) {}
  [[gnu::always_inline]] operator __m512() const { return quern::kernels::software::as<__m512>(lanes_); }
  [[gnu::always_inline]] static batch load_unaligned(const float* p) {
    batch x;
    __builtin_memcpy(&x.lanes_, p, 64);
    return x;
  }
  [[gnu::always_inline]] void store_unaligned(float* p) const { __builtin_memcpy(p, &lanes_, 64); }

 private:
  using Lanes = quern::kernels::software::Reals;
  Lanes lanes_;
};

using QuernBatch = batch<float, avx512bw>;
[[gnu::always_inline]] inline QuernBatch operator+(QuernBatch a, QuernBatch b) {
  return QUERN_FLOATS(_mm256_add_ps, a, b);
}
[[gnu::always_inline]] inline QuernBatch operator-(QuernBatch a, QuernBatch b) {
  return QUERN_FLOATS(_mm256_sub_ps, a, b);
}
[[gnu::always_inline]] inline QuernBatch operator*(QuernBatch a, QuernBatch b) {
  return QUERN_FLOATS(_mm256_mul_ps, a, b);
}
[[gnu::always_inline]] inline QuernBatch operator/(QuernBatch a, QuernBatch b) {
  return QUERN_FLOATS(_mm256_div_ps, a, b);
}
[[gnu::always_inline]] inline QuernBatch max(const QuernBatch& a, const QuernBatch& b) {
  return QUERN_FLOATS(_mm256_max_ps, a, b);
}
[[gnu::always_inline]] inline QuernBatch min(const QuernBatch& a, const QuernBatch& b) {
  return QUERN_FLOATS(_mm256_min_ps, a, b);
}

}  // namespace xsimd
