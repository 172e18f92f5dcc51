// Primitives of the AVX-512 path with VNNI, VBMI and VBMI2: byte dot products through vpdpbusd, whose
// weights are unsigned, so that signed codes are stored with a bias of 128 (scalar.hpp: kBias).
#pragma once

#include "kernels/primitives/avx512.hpp"

namespace quern::kernels {

struct Avx512Vnni : Avx512Lanes<Avx512Vnni> {
  static constexpr const char* kName = "avx512vnni";
  static constexpr int kTileLanes = 12;
  static constexpr const char* kDescription = "AVX-512 with VNNI, VBMI, VBMI2; byte products through vpdpbusd";

  // Exact without the caller's help: the bias is taken off by a second product. Loops use dot4_biased.
  [[gnu::always_inline]] static I16 dot4(I16 acc, Line w, Quad a) {
    const __m512i biases = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(-128), a);
    const __m512i sum = _mm512_dpbusd_epi32(acc.v, bias_line(w).v, a);
    return {_mm512_sub_epi32(sum, biases)};
  }
  [[gnu::always_inline]] static I16 dot4(I16 acc, Line w, const std::int8_t* a) { return dot4(acc, w, quad(a)); }
  [[gnu::always_inline]] static I16 dot4_unsigned(I16 acc, Line w, Quad a) {
    return {_mm512_dpbusd_epi32(acc.v, w.v, a)};
  }
  static constexpr std::int32_t kBias = 128;
  [[gnu::always_inline]] static Line bias_line(Line w) {
    return {_mm512_xor_si512(w.v, _mm512_set1_epi8(-128))};
  }
  [[gnu::always_inline]] static I16 dot4_biased(I16 acc, Line w, Quad a) { return dot4_unsigned(acc, w, a); }

  static constexpr bool kHasLookup256 = true;
  [[gnu::always_inline]] static Line lookup256(const std::int8_t* table, Line index) {
    const __m512i low = _mm512_permutex2var_epi8(load512(table), index.v, load512(table + 64));
    const __m512i high = _mm512_permutex2var_epi8(load512(table + 128), index.v, load512(table + 192));
    return {_mm512_mask_mov_epi8(low, _mm512_movepi8_mask(index.v), high)};
  }
};

}  // namespace quern::kernels
