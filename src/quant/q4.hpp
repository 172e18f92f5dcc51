// q4, the default for float sources: 4.3125 bits a weight. Codes pick a value of a table of 16
// (dense near zero, as trained weights are), the table scaled by one of 16 sub-scales (+-1/8 ..
// +-1) chosen per row and 16 columns, and one f16 scale per row and 256 columns: value = d *
// T[id][u], T small integers in [-127, 127], so that a dot product over 256 columns stays in
// integers (256 * 127 * 127 < 2^23) and pays one rescale.
//
// Super-block of G = columns / 32 groups: 4G four-bit lines (line l = columns 8l..8l+7: the low
// nibble of byte 4r+j is row r, column 8l+j, the high nibble column 8l+4+j), then G * 16 bytes of
// ids (byte 16g+r: low nibble = row r, columns 32g..32g+15; high nibble = columns 32g+16..32g+31),
// then f16 d[16], one per row, of either sign.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/format.hpp"

namespace quern::quant {

struct Q4 {
  static constexpr FormatId kId = FormatId::q4;
  static constexpr std::string_view kName = "q4";
  static constexpr std::size_t kColumnStep = 32;
  static constexpr std::size_t kActivationGroup = 256;  // kernels take it from here
  static constexpr bool kInteger = true;
  static constexpr bool kForeign = false;
  static constexpr bool kHasMinimum = false;

  static constexpr std::size_t code_lines(std::size_t columns) { return columns / 8; }
  static constexpr std::size_t ids_offset(std::size_t columns) {
    return code_lines(columns) * kLineBytes;
  }
  static constexpr std::size_t scales_offset(std::size_t columns) {
    return ids_offset(columns) + columns / kGroupColumns * kPanelRows;
  }
  static constexpr std::size_t super_block_bytes(std::size_t columns) {
    return scales_offset(columns) + kPanelRows * 2;
  }

  static constexpr std::size_t kIdColumns = 16;
  static constexpr std::int8_t kBase[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};
  static constexpr int sub_scale(unsigned id) {
    return id < 8 ? static_cast<int>(id) + 1 : 7 - static_cast<int>(id);
  }
  // T[id][u]: kBase * sub_scale / 8, a half rounded up (what pmulhrsw does with sub_scale << 12).
  static constexpr int table(unsigned id, unsigned u) {
    return (kBase[u] * sub_scale(id) + 4) >> 3;
  }

  // Kernels: use(i, line) for the eight lines (columns 4i..4i+3) of 32 columns, in operand form.
  static constexpr bool kUnsignedCodes = false;  // operands are T + P::kBias
  static constexpr std::int32_t kZero = 0;
  template <class P, class Use>
  [[gnu::always_inline]] static void for_each_line(const std::byte* super_block,
                                                   std::size_t columns, std::size_t group,
                                                   Use use) {
    const std::byte* ids = super_block + ids_offset(columns) + group * kPanelRows;
    const std::byte* codes = super_block + 4 * group * kLineBytes;
    if constexpr (P::kHasLookup256) {
      const auto rows = P::row_selects(ids);
      look_up<P>(codes, rows.low, use, 0);
      look_up<P>(codes + 2 * kLineBytes, rows.high, use, 4);
    } else {
      half_group<P>(codes, P::row_low_nibbles(ids), use, 0);
      half_group<P>(codes + 2 * kLineBytes, P::row_high_nibbles(ids), use, 4);
    }
  }
  template <class P>
  [[gnu::always_inline]] static typename P::V16 scales(const std::byte* super_block,
                                                       std::size_t columns, std::size_t) {
    return P::load_f16(
        reinterpret_cast<const std::uint16_t*>(super_block + scales_offset(columns)));
  }

  // Tables of the kernels, one copy per ISA. full: T[id][u] + P::kBias at 16 * id + u.
  template <class P>
  struct Tables {
    alignas(64) std::int8_t full[256];
    alignas(16) std::int8_t codes[16];
    std::int8_t sub_scales[16];
    static constexpr Tables make() {
      Tables t{};
      for (unsigned u = 0; u < 16; ++u) {
        t.codes[u] = kBase[u];
        t.sub_scales[u] = static_cast<std::int8_t>(sub_scale(u));
        for (unsigned id = 0; id < 16; ++id)  // modulo 256: the operand is a byte
          t.full[16 * id + u] =
              static_cast<std::int8_t>(static_cast<std::uint8_t>(table(id, u) + P::kBias));
      }
      return t;
    }
  };
  template <class P>
  static constexpr Tables<P> kTables = Tables<P>::make();
  // Four lines of 16 columns, whose rows have the tables of `row`.
  template <class P, class Use>
  [[gnu::always_inline]] static void look_up(const std::byte* codes, typename P::RowSelect row, Use use,
                                             std::size_t first) {
    constexpr const Tables<P>& t = kTables<P>;
    for (std::size_t i = 0; i < 2; ++i) {
      const typename P::Line packed = P::load_line(codes + i * kLineBytes);
      use(first + 2 * i, P::lookup256_low(t.full, row, packed));
      use(first + 2 * i + 1, P::lookup256_high(t.full, row, packed));
    }
  }
  // The same from the table ids themselves.
  template <class P, class Use>
  [[gnu::always_inline]] static void half_group(const std::byte* codes, typename P::Line ids,
                                                Use use, std::size_t first) {
    constexpr const Tables<P>& t = kTables<P>;
    const auto s = P::scale_line(P::lookup16(t.sub_scales, ids));
    for (std::size_t i = 0; i < 2; ++i) {
      const typename P::Line packed = P::load_line(codes + i * kLineBytes);
      const typename P::Line low = P::lookup16(t.codes, P::low_nibbles(packed));
      const typename P::Line high = P::lookup16(t.codes, P::high_nibbles(packed));
      use(first + 2 * i, P::bias_line(P::scale_eighths(low, s)));
      use(first + 2 * i + 1, P::bias_line(P::scale_eighths(high, s)));
    }
  }

  // The sums of 32 columns for one token, where an ISA has something better than lines of operands:
  // dot_group(block, columns, group, a [32], even, odd) adds to either sum.
  template <class P>
  static constexpr bool kHasDotGroup = P::kHasDotEighths;
  template <class P>
  [[gnu::always_inline]] static void dot_group(const std::byte* super_block, std::size_t columns,
                                               std::size_t group, const std::int8_t* a,
                                               typename P::I16& even, typename P::I16& odd) {
    constexpr const Tables<P>& t = kTables<P>;
    const std::byte* ids = super_block + ids_offset(columns) + group * kPanelRows;
    const std::byte* codes = super_block + 4 * group * kLineBytes;
    for (std::size_t i = 0; i < 4; ++i) {
      const typename P::Line row = i < 2 ? P::row_low_nibbles(ids) : P::row_high_nibbles(ids);
      const auto s = P::scale_line(P::lookup16(t.sub_scales, row));
      const typename P::Line packed = P::load_line(codes + i * kLineBytes);
      even = P::dot4_eighths(even, P::lookup16(t.codes, P::low_nibbles(packed)), s,
                             P::quad(a + 8 * i));
      odd = P::dot4_eighths(odd, P::lookup16(t.codes, P::high_nibbles(packed)), s,
                            P::quad(a + 8 * i + 4));
    }
  }

  // See FormatTraits (format.hpp).
  static void encode(const float* values, std::size_t stride, std::size_t columns,
                     const float* importance, std::byte* super_block);
  static void decode(const std::byte* super_block, std::size_t columns, float* values,
                     std::size_t stride);
};

}  // namespace quern::quant
