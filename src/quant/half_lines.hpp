// Reading and writing super-blocks of 16-bit floats (N16K2), shared by bf16 and f16.
// For the .cpp files of this folder only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quant/format.hpp"

namespace quern::quant {

// to_bits: float -> std::uint16_t.
template <class ToBits>
void store_half_lines(const float* values, std::size_t stride, std::size_t columns,
                      std::byte* super_block, ToBits to_bits) {
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t k = 0; k < columns; ++k) {
      const std::uint16_t bits = to_bits(values[row * stride + k]);
      std::memcpy(super_block + k / 2 * kLineBytes + row * 4 + k % 2 * 2, &bits, 2);
    }
}

// to_float: std::uint16_t -> float.
template <class ToFloat>
void load_half_lines(const std::byte* super_block, std::size_t columns, float* values,
                     std::size_t stride, ToFloat to_float) {
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t k = 0; k < columns; ++k) {
      std::uint16_t bits;
      std::memcpy(&bits, super_block + k / 2 * kLineBytes + row * 4 + k % 2 * 2, 2);
      values[row * stride + k] = to_float(bits);
    }
}

}  // namespace quern::quant
