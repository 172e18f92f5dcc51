#include "quant/q6_k.hpp"

#include <algorithm>
#include <cmath>

#include "quant/f16_scale.hpp"
#include "quant/q6_block.hpp"

namespace quern::quant {

namespace {

constexpr float kLargestScale = 127;

// The value of the greatest magnitude becomes code 0, that is -32 steps.
float step_of(const float* x) {
  float extreme = 0;
  for (std::size_t k = 0; k < Q6_K::kScaleColumns; ++k)
    if (std::fabs(representable(x[k])) > std::fabs(extreme)) extreme = representable(x[k]);
  return -extreme / static_cast<float>(Q6_K::kZero);
}

void encode_row(const float* values, std::size_t columns, std::size_t row, Q6Block& block) {
  constexpr std::size_t kColumns = Q6_K::kScaleColumns;
  float steps[Q6Block::kGroups] = {}, largest = 0;
  for (std::size_t g = 0; g < columns / kColumns; ++g) {
    steps[g] = step_of(values + g * kColumns);
    largest = std::max(largest, std::fabs(steps[g]));
  }
  block.d[row] = to_f16_saturated(largest / kLargestScale);
  const float d = base::f16_to_float(block.d[row]);
  for (std::size_t g = 0; g < columns / kColumns; ++g) {
    const float whole =
        d > 0 ? round_to_even(std::clamp(steps[g] / d, -kLargestScale, kLargestScale)) : 0;
    block.scales[g][row] = static_cast<std::int8_t>(whole);
    const float scale = d * whole;
    for (std::size_t k = 0; k < kColumns; ++k) {
      const float real = scale == 0 ? 0 : representable(values[g * kColumns + k]) / scale;
      const float code = round_to_even(std::clamp(real, -32.0F, 31.0F));
      block.codes[row][g * kColumns + k] =
          static_cast<std::uint8_t>(static_cast<int>(code) + Q6_K::kZero);
    }
  }
}

}  // namespace

void Q6_K::encode(const float* values, std::size_t stride, std::size_t columns, const float*,
                  std::byte* super_block) {
  Q6Block block;
  for (std::size_t row = 0; row < kPanelRows; ++row)
    encode_row(values + row * stride, columns, row, block);
  store_q6(block, columns, super_block);
}

void Q6_K::decode(const std::byte* super_block, std::size_t columns, float* values,
                  std::size_t stride) {
  Q6Block block;
  load_q6(super_block, columns, block);
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t k = 0; k < columns; ++k) {
      const float scale = base::f16_to_float(block.d[row]) *
                          static_cast<float>(block.scales[k / kScaleColumns][row]);
      values[row * stride + k] =
          scale * static_cast<float>(static_cast<int>(block.codes[row][k]) - kZero);
    }
}

}  // namespace quern::quant
