// Primitives of AMD's cores with AVX-512: the lanes of avx512bf16.hpp with what Zen 4 and later do better (Zen4Of), and
// with what only Zen 4 does (Zen4); zen5.hpp has the next core.
#pragma once

#include "kernels/primitives/avx512bf16.hpp"

namespace quern::kernels {

template <class Tag>
struct Zen4Of : Avx512Bf16Of<Tag> {
  using Lanes = Avx512Lanes<Tag>;
  using typename Lanes::Line;
  using Lanes::load512, Lanes::rows_of;

  // vpermi2b of 128 entries is one operation here: two and a blend, not four masked vpermb.
  struct RowSelect {
    __m512i base;     // 16 * id, four bytes a row
    __mmask64 upper;  // rows in the upper half of the table
  };
  struct RowSelects {
    RowSelect low, high;
  };
  [[gnu::always_inline]] static RowSelects row_selects(const std::byte* ids) {
    const __m512i rows = rows_of(ids).v, upper_nibble = _mm512_set1_epi8(static_cast<char>(0xf0));
    return {select(_mm512_and_si512(_mm512_slli_epi16(rows, 4), upper_nibble)),
            select(_mm512_and_si512(rows, upper_nibble))};
  }
  [[gnu::always_inline]] static Line lookup256_low(const std::int8_t* table, RowSelect row, Line packed) {
    return pick(table, row, packed.v);
  }
  [[gnu::always_inline]] static Line lookup256_high(const std::int8_t* table, RowSelect row, Line packed) {
    return pick(table, row, _mm512_srli_epi16(packed.v, 4));
  }

 private:
  [[gnu::always_inline]] static RowSelect select(__m512i base) { return {base, _mm512_movepi8_mask(base)}; }
  [[gnu::always_inline]] static Line pick(const std::int8_t* table, RowSelect row, __m512i nibbles) {
    constexpr int kAndOr = 0xea;  // (a & b) | c
    const __m512i index = _mm512_ternarylogic_epi32(nibbles, _mm512_set1_epi8(15), row.base, kAndOr);
    const __m512i low = _mm512_permutex2var_epi8(load512(table), index, load512(table + 64));
    const __m512i high = _mm512_permutex2var_epi8(load512(table + 128), index, load512(table + 192));
    return {_mm512_mask_blend_epi8(row.upper, low, high)};
  }
};

struct Zen4 : Zen4Of<Zen4> {
  static constexpr const char* kName = "zen4";
  static constexpr const char* kDescription = "AVX-512 with VNNI, VBMI, VBMI2, BF16 on AMD Zen 4";

  // Optional: a product with one token reads one panel after the other and asks for lines so far ahead, into L2.
  // Prefetches into L1 wait in its 24 miss buffers: 14-15 GB/s on one core of an EPYC VM, whatever the distance.
  // GB/s of weights from memory, four streams with those -> this: q8 15 -> 19, q4 14 -> 19, q4_0 16 -> 20, q4_1
  // 13 -> 19, q4_k 14 -> 21, q5_k 13 -> 25, q6_k 12 -> 23 (plain reads: 25).
  static constexpr std::size_t kStreamAhead = 16384;
  [[gnu::always_inline]] static void prefetch_stream(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
  }
};

}  // namespace quern::kernels
