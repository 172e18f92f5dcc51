#include "quant/q4.hpp"

#include <cstring>

#include "base/small_float.hpp"
#include "quant/grouped_block.hpp"
#include "quant/q4_fit.hpp"

namespace quern::quant {

namespace {

// Byte of the id area that holds the id of (row, column), and the shift in it.
std::size_t id_byte(std::size_t row, std::size_t column) {
  return column / kGroupColumns * kPanelRows + row;
}
unsigned id_shift(std::size_t column) {
  return column % kGroupColumns < Q4::kIdColumns ? 0 : 4;
}

}  // namespace

void Q4::encode(const float* values, std::size_t stride, std::size_t columns,
                const float* importance, std::byte* super_block) {
  std::memset(super_block, 0, super_block_bytes(columns));
  std::byte* ids = super_block + ids_offset(columns);
  std::byte* scales = super_block + scales_offset(columns);
  for (std::size_t row = 0; row < kPanelRows; ++row) {
    const Q4Row fit = fit_q4_row(values + row * stride, columns, importance);
    for (std::size_t k = 0; k < columns; ++k)
      put_bits(super_block[nibble_byte(row, k)], fit.codes[k], nibble_shift(k));
    for (std::size_t k = 0; k < columns; k += kIdColumns)
      put_bits(ids[id_byte(row, k)], fit.ids[k / kIdColumns], id_shift(k));
    std::memcpy(scales + row * 2, &fit.scale, 2);
  }
}

void Q4::decode(const std::byte* super_block, std::size_t columns, float* values,
                std::size_t stride) {
  const std::byte* ids = super_block + ids_offset(columns);
  const std::byte* scales = super_block + scales_offset(columns);
  for (std::size_t row = 0; row < kPanelRows; ++row) {
    base::F16 bits;
    std::memcpy(&bits, scales + row * 2, 2);
    const float scale = base::f16_to_float(bits);
    for (std::size_t k = 0; k < columns; ++k) {
      const unsigned id = get_bits(ids[id_byte(row, k)], id_shift(k), 15);
      const unsigned code = get_bits(super_block[nibble_byte(row, k)], nibble_shift(k), 15);
      values[row * stride + k] = scale * static_cast<float>(table(id, code));
    }
  }
}

}  // namespace quern::quant
