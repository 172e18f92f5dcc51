// Primitives of AVX-512 with VNNI, VBMI and VBMI2 where the CPU has BF16 too (Zen 4, Sapphire
// Rapids and later): the lanes of avx512vnni.hpp and products of bf16 pairs through vdpbf16ps.
#pragma once

#include "kernels/primitives/avx512vnni.hpp"

namespace quern::kernels {

template <class Tag>
struct Avx512Bf16Of : Avx512VnniOf<Tag> {
  using Lanes = Avx512Lanes<Tag>;
  using Lanes::load512;
  using typename Lanes::I16, typename Lanes::V16;

  // Optional, with what follows (pair_products.hpp). Checked on a Zen 5: the odd halves are added
  // first, each product and sum rounded once.
  [[gnu::always_inline]] static V16 dot_pairs(V16 sum, I16 a, I16 b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a.lanes),
                            reinterpret_cast<__m512bh>(b.lanes));
  }
  // Lanes of two floats to pairs, and 16 floats to 16 numbers; what is subnormal becomes 0.
  [[gnu::always_inline]] static I16 join_pairs(V16 even, V16 odd) {
    static constexpr std::uint16_t kInterleave[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                      21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                      11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even));
    return {_mm512_permutexvar_epi16(load512(kInterleave), both)};
  }
  [[gnu::always_inline]] static void store_bf16(std::byte* to, V16 x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
  }
  // 64 codes of a sign and an index into tables of 128 low and 128 high bytes: those of a lane to
  // two pairs.
  [[gnu::always_inline]] static void widen_bytes(const std::byte* line,
                                                 const std::uint8_t (&tables)[256],
                                                 I16 (&pairs)[2]) {
    constexpr int kOrAnd = 0xf8;  // a | (b & c)
    const __m512i codes = load512(line), sign = _mm512_set1_epi8(-128);
    const __m512i low = _mm512_permutex2var_epi8(load512(tables), codes, load512(tables + 64));
    const __m512i high =
        _mm512_permutex2var_epi8(load512(tables + 128), codes, load512(tables + 192));
    const __m512i top = _mm512_ternarylogic_epi32(high, codes, sign, kOrAnd);
    // Bytes of lanes 4i, 4i + 1 and of lanes 4i + 2, 4i + 3 as words; then each lane's first and
    // second pair.
    const __m512i two = _mm512_unpacklo_epi8(low, top), next = _mm512_unpackhi_epi8(low, top);
    pairs[0] = {_mm512_castps_si512(
        _mm512_shuffle_ps(_mm512_castsi512_ps(two), _mm512_castsi512_ps(next), 0x88))};
    pairs[1] = {_mm512_castps_si512(
        _mm512_shuffle_ps(_mm512_castsi512_ps(two), _mm512_castsi512_ps(next), 0xdd))};
  }
};

}  // namespace quern::kernels
