// Fits of a group of 32 values by equidistant codes, for q4_0, q4_1, q5_0 and q5_1: a few candidate
// steps, each refitted by least squares, the best by weighted squared error. The scales returned
// are f16 values. For the .cpp files of this folder only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/format.hpp"
#include "quant/grouped_block.hpp"

namespace quern::quant {

struct UniformGroup {
  float scale = 0;
  float minimum = 0;
  std::uint8_t codes[kGroupColumns] = {};
};

// value = scale * (code - zero), code in [0, 2 * zero). weights: [32] or nullptr.
UniformGroup fit_symmetric(const float* values, const float* weights, int zero);

// value = scale * code + minimum, code in [0, largest].
UniformGroup fit_affine(const float* values, const float* weights, int largest);

// All groups of a super-block; fit(values, weights) -> UniformGroup.
template <class Fit>
void fit_block(const float* values, std::size_t stride, std::size_t columns,
               const float* importance, GroupedBlock& block, Fit fit) {
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t begin = 0; begin < columns; begin += kGroupColumns) {
      const float* weights = importance == nullptr ? nullptr : importance + begin;
      const UniformGroup group = fit(values + row * stride + begin, weights);
      std::memcpy(block.codes[row] + begin, group.codes, kGroupColumns);
      block.scales[begin / kGroupColumns][row] = base::float_to_f16(group.scale);
      block.minima[begin / kGroupColumns][row] = base::float_to_f16(group.minimum);
    }
}

// Values of a row of a super-block: scale * (code - zero) + minimum (with_minimum; then zero is 0).
template <class F>
void decode_grouped_row(const std::byte* super_block, std::size_t columns, std::size_t row, float* values, int zero) {
  for (std::size_t begin = 0; begin < columns; begin += kGroupColumns) {
    const std::size_t at = (begin / kGroupColumns * kPanelRows + row) * sizeof(base::F16);
    base::F16 bits;
    std::memcpy(&bits, super_block + F::scales_offset(columns) + at, sizeof bits);
    const float scale = base::f16_to_float(bits);
    float minimum = 0;
    if constexpr (F::kHasMinimum) {
      std::memcpy(&bits, super_block + F::minima_offset(columns) + at, sizeof bits);
      minimum = base::f16_to_float(bits);
    }
    for (std::size_t k = begin; k < begin + kGroupColumns; ++k) {
      float value = scale * static_cast<float>(static_cast<int>(load_code<F>(super_block, columns, row, k)) - zero);
      if constexpr (F::kHasMinimum) value += minimum;
      values[k] = value;
    }
  }
}

template <class F>
void decode_grouped(const std::byte* super_block, std::size_t columns, float* values,
                    std::size_t stride, int zero) {
  for (std::size_t row = 0; row < kPanelRows; ++row)
    decode_grouped_row<F>(super_block, columns, row, values + row * stride, zero);
}

}  // namespace quern::quant
