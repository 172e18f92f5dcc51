// pack_code_rows: codes and scales of one row at a time into the super-blocks of a panel.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "quant/formats.hpp"
#include "quant/grouped_block.hpp"
#include "quant/pack.hpp"

namespace quern::quant {

namespace {

// One row of one super-block that begins at column `begin` of the matrix.
struct Place {
  std::size_t row, begin, columns;
  std::byte* super_block;
};

std::size_t source_group(const CodeRow& from, const Place& to, std::size_t column) {
  return (to.begin + column) / from.group;
}

template <class F>
void pack_integers(const CodeRow& from, const Place& to) {
  for (std::size_t k = 0; k < to.columns; ++k) {
    const std::uint8_t code = from.codes[to.begin + k];
    if constexpr (F::kCodeBits == 4)
      put_bits(to.super_block[nibble_byte(to.row, k)], code, nibble_shift(k));
    else
      to.super_block[byte_line_byte(to.row, k)] = static_cast<std::byte>(code);
  }
  std::byte* scales = to.super_block + F::scales_offset(to.columns);
  std::byte* zeros = to.super_block + F::zeros_offset(to.columns);
  for (std::size_t g = 0; g < F::groups(to.columns); ++g) {
    const std::size_t group = source_group(from, to, g * F::kScaleColumns);
    const std::size_t place = g * kPanelRows + to.row;
    const float scale = from.scales[group];
    if constexpr (F::kScaleBytes == 4) {
      std::memcpy(scales + place * 4, &scale, 4);
    } else {
      const base::F16 bits = base::float_to_f16(scale);
      std::memcpy(scales + place * 2, &bits, 2);
    }
    zeros[place] = static_cast<std::byte>(from.zeros[group] & 0xff);
  }
}

void pack_f8(const CodeRow& from, const Place& to) {
  for (std::size_t k = 0; k < to.columns; ++k)
    to.super_block[k * kPanelRows + to.row] = static_cast<std::byte>(from.codes[to.begin + k]);
  // The lines are padded to four columns; the scales lie behind the padding.
  const std::size_t padded = (to.columns + F8E4M3::kColumnStep - 1) / F8E4M3::kColumnStep *
                             F8E4M3::kColumnStep;
  for (std::size_t k = 0; k < to.columns; k += F8E4M3::kScaleColumns)
    std::memcpy(to.super_block + F8E4M3::scales_offset(padded) +
                    (k / F8E4M3::kScaleColumns * kPanelRows + to.row) * sizeof(float),
                &from.scales[source_group(from, to, k)], sizeof(float));
}

// The exponent e of 2^(e - 128).
std::uint8_t exponent_of(float scale) {
  return static_cast<std::uint8_t>(std::clamp(std::ilogb(scale) + Mxfp4::kBias, 0, 255));
}

void pack_mxfp4(const CodeRow& from, const Place& to) {
  std::byte* exponents = to.super_block + Mxfp4::scales_offset(to.columns);
  for (std::size_t k = 0; k < to.columns; ++k)
    put_bits(to.super_block[nibble_byte(to.row, k)], from.codes[to.begin + k], nibble_shift(k));
  for (std::size_t g = 0; g < to.columns / kGroupColumns; ++g)
    exponents[g * kPanelRows + to.row] = static_cast<std::byte>(
        exponent_of(from.scales[source_group(from, to, g * kGroupColumns)]));
}

struct Packer {
  std::size_t scale_columns = 0;  // 0: takes no code rows
  void (*pack)(const CodeRow& from, const Place& to) = nullptr;
};

Packer packer_of(FormatId id) {
  switch (id) {
    case FormatId::int4_g32:
      return {Int4G32::kScaleColumns, pack_integers<Int4G32>};
    case FormatId::int4_g64:
      return {Int4G64::kScaleColumns, pack_integers<Int4G64>};
    case FormatId::int4_g128:
      return {Int4G128::kScaleColumns, pack_integers<Int4G128>};
    case FormatId::int4_f32:
      return {Int4F32::kScaleColumns, pack_integers<Int4F32>};
    case FormatId::int8_g32:
      return {Int8G32::kScaleColumns, pack_integers<Int8G32>};
    case FormatId::int8_g128:
      return {Int8G128::kScaleColumns, pack_integers<Int8G128>};
    case FormatId::f8_e4m3:
      return {F8E4M3::kScaleColumns, pack_f8};
    case FormatId::mxfp4:
      return {kGroupColumns, pack_mxfp4};
    default:
      return {};
  }
}

}  // namespace

bool holds_groups(const FormatTraits& format, std::size_t group, std::size_t columns) {
  const Packer packer = packer_of(format.id);
  if (packer.pack == nullptr || group == 0) return false;
  // Codes of integer formats are not padded here: beside other values a zero point is no zero.
  if (format.integer && columns % format.column_step != 0) return false;
  return group >= columns || group % packer.scale_columns == 0;
}

void pack_code_rows(const FormatTraits& format, const CodeRow rows[kPanelRows],
                    std::size_t columns, std::byte* panel) {
  const Packer packer = packer_of(format.id);
  QUERN_ASSERT(packer.pack != nullptr);
  for (std::size_t begin = 0; begin < columns; begin += kSuperColumns) {
    const std::size_t width = std::min(kSuperColumns, columns - begin);
    const std::size_t bytes = format.super_block_bytes(padded_columns(format, width));
    std::memset(panel, 0, bytes);
    for (std::size_t row = 0; row < kPanelRows; ++row) {
      if (rows[row].codes == nullptr) continue;
      QUERN_ASSERT(holds_groups(format, rows[row].group, columns));
      packer.pack(rows[row], {row, begin, width, panel});
    }
    panel += bytes;
  }
}

}  // namespace quern::quant
