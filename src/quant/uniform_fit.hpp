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

// Values of a super-block: scale * (code - zero) + minimum (with_minimum; then zero is 0).
template <class F>
void decode_grouped(const std::byte* super_block, std::size_t columns, float* values,
                    std::size_t stride, int zero) {
  GroupedBlock block;
  load_block<F>(super_block, columns, block);
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t begin = 0; begin < columns; begin += kGroupColumns) {
      const std::size_t group = begin / kGroupColumns;
      const float scale = base::f16_to_float(block.scales[group][row]);
      const float minimum = F::kHasMinimum ? base::f16_to_float(block.minima[group][row]) : 0;
      for (std::size_t k = begin; k < begin + kGroupColumns; ++k) {
        float value = scale * static_cast<float>(block.codes[row][k] - zero);
        if constexpr (F::kHasMinimum) value += minimum;
        values[row * stride + k] = value;
      }
    }
}

}  // namespace quern::quant
