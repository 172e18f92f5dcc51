// Primitives of the AVX-512 path with VNNI, VBMI and VBMI2: byte dot products through vpdpbusd,
// whose weights are unsigned, so that signed codes are stored with a bias of 128 (scalar.hpp:
// kBias).
#pragma once

#include "kernels/primitives/avx512.hpp"

namespace quern::kernels {

template <class Tag>
struct Avx512VnniOf : Avx512Lanes<Tag> {
  using Lanes = Avx512Lanes<Tag>;
  using typename Lanes::I16, typename Lanes::Line, typename Lanes::Quad;
  using Lanes::quad, Lanes::load512;
  static constexpr int kTileLanes = 24;

  // Exact without the caller's help: the bias is taken off by a second product. Loops use
  // dot4_biased.
  [[gnu::always_inline]] static I16 dot4(I16 acc, Line w, Quad a) {
    const __m512i biases = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(-128), a);
    const __m512i sum = _mm512_dpbusd_epi32(acc, bias_line(w).v, a);
    return {_mm512_sub_epi32(sum, biases)};
  }
  [[gnu::always_inline]] static I16 dot4(I16 acc, Line w, const std::int8_t* a) {
    return dot4(acc, w, quad(a));
  }
  [[gnu::always_inline]] static I16 dot4_unsigned(I16 acc, Line w, Quad a) {
    return {_mm512_dpbusd_epi32(acc, w.v, a)};
  }
  static constexpr std::int32_t kBias = 128;
  [[gnu::always_inline]] static Line bias_line(Line w) {
    return {_mm512_xor_si512(w.v, _mm512_set1_epi8(-128))};
  }
  [[gnu::always_inline]] static I16 dot4_biased(I16 acc, Line w, Quad a) {
    return dot4_unsigned(acc, w, a);
  }

  // Optional: unsigned activations beside signed weights (attention_integer.hpp).
  static constexpr bool kUnsignedShares = true;
  [[gnu::always_inline]] static I16 dot4_shares(I16 acc, Line w, Quad shares) {
    return {_mm512_dpbusd_epi32(acc, shares, w.v)};
  }
  [[gnu::always_inline]] static void store_u8(std::uint8_t* p, I16 a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
  }
  [[gnu::always_inline]] static void store_codes(std::uint8_t* p, I16 a, I16 b) {  // 32 of them
    static constexpr std::uint8_t kLowBytes[64] = {
        0,  4,  8,  12, 16, 20, 24, 28,  32,  36,  40,  44,  48,  52,  56,  60,
        64, 68, 72, 76, 80, 84, 88, 92, 96, 100, 104, 108, 112, 116, 120, 124};
    const __m512i bytes = _mm512_permutex2var_epi8(a, load512(kLowBytes), b);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_castsi512_si256(bytes));
  }

  static constexpr bool kHasDotEighths = false;
  static constexpr bool kHasLookup256 = true;
  struct RowSelect {
    __m512i base;                     // 16 * id, four bytes a row
    __mmask64 second, third, fourth;  // rows in the second, third, fourth quarter of the table
  };
  struct RowSelects {
    RowSelect low, high;
  };
  // Of 16 rows' table ids: one byte a row, an id in either nibble.
  [[gnu::always_inline]] static RowSelects row_selects(const std::byte* ids) {
    return {row_select(Lanes::row_low_nibbles(ids)), row_select(Lanes::row_high_nibbles(ids))};
  }
  [[gnu::always_inline]] static RowSelect row_select(Line ids) {
    const __m512i base = _mm512_slli_epi16(ids.v, 4);
    const __mmask64 bit7 = _mm512_movepi8_mask(base);
    const __mmask64 bit6 = _mm512_movepi8_mask(_mm512_slli_epi16(base, 1));
    return {base, _kandn_mask64(bit7, bit6), _kandn_mask64(bit6, bit7), _kand_mask64(bit6, bit7)};
  }
  [[gnu::always_inline]] static Line lookup256_low(const std::int8_t* table, RowSelect row,
                                                   Line packed) {
    return pick(table, row, packed.v);
  }
  [[gnu::always_inline]] static Line lookup256_high(const std::int8_t* table, RowSelect row,
                                                    Line packed) {
    return pick(table, row, _mm512_srli_epi16(packed.v, 4));
  }

 private:
  // Four masked vpermb of 64 entries, not two vpermi2b of 128 and a blend: those are three
  // operations each on Intel (q4 from L2: 21 GB/s against 17).
  [[gnu::always_inline]] static Line pick(const std::int8_t* table, RowSelect row,
                                          __m512i nibbles) {
    constexpr int kAndOr = 0xea;  // (a & b) | c
    const __m512i index =
        _mm512_ternarylogic_epi32(nibbles, _mm512_set1_epi8(15), row.base, kAndOr);
    __m512i r = _mm512_permutexvar_epi8(index, load512(table));
    r = _mm512_mask_permutexvar_epi8(r, row.second, index, load512(table + 64));
    r = _mm512_mask_permutexvar_epi8(r, row.third, index, load512(table + 128));
    return {_mm512_mask_permutexvar_epi8(r, row.fourth, index, load512(table + 192))};
  }
};

struct Avx512Vnni : Avx512VnniOf<Avx512Vnni> {
  static constexpr const char* kName = "avx512vnni";
  static constexpr const char* kDescription =
      "AVX-512 with VNNI, VBMI, VBMI2; byte products through vpdpbusd";
};

}  // namespace quern::kernels
