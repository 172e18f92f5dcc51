// The AVX-VNNI path with vpdpbusd put together from AVX2 instructions, exact: what it computes is tested on
// every CPU with AVX2. Even and odd bytes are multiplied as words, so that nothing saturates.
#pragma once

#include "kernels/primitives/avxvnni.hpp"

namespace quern::kernels {

struct EmulatedVpdpbusd {
  static constexpr const char* kName = "avxvnni_emulated";
  [[gnu::always_inline]] static __m256i dpbusd(__m256i acc, __m256i unsigned_bytes, __m256i signed_bytes) {
    const __m256i even = _mm256_and_si256(unsigned_bytes, _mm256_set1_epi16(0xff));
    const __m256i odd = _mm256_srli_epi16(unsigned_bytes, 8);
    const __m256i signed_even = _mm256_srai_epi16(_mm256_slli_epi16(signed_bytes, 8), 8);
    const __m256i signed_odd = _mm256_srai_epi16(signed_bytes, 8);
    return _mm256_add_epi32(acc, _mm256_add_epi32(_mm256_madd_epi16(even, signed_even),
                                                  _mm256_madd_epi16(odd, signed_odd)));
  }
};
using AvxVnniEmulated = AvxVnniOf<EmulatedVpdpbusd>;

}  // namespace quern::kernels
