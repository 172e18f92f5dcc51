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

  // See FormatTraits (format.hpp).
  static void encode(const float* values, std::size_t stride, std::size_t columns,
                     const float* importance, std::byte* super_block);
  static void decode(const std::byte* super_block, std::size_t columns, float* values,
                     std::size_t stride);
};

}  // namespace quern::quant
