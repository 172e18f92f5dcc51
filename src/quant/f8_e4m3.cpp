#include "quant/f8_e4m3.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/small_float.hpp"

namespace quern::quant {

namespace {

constexpr float kLargest = 448;

float scale_of(const float* x, std::size_t n) {
  float largest = 0;
  for (std::size_t k = 0; k < n; ++k)
    if (std::isfinite(x[k])) largest = std::max(largest, std::fabs(x[k]));
  return largest / kLargest;
}

}  // namespace

void F8E4M3::encode(const float* values, std::size_t stride, std::size_t columns, const float*,
                    std::byte* super_block) {
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t begin = 0; begin < columns; begin += kScaleColumns) {
      const float* x = values + row * stride + begin;
      const std::size_t n = std::min(kScaleColumns, columns - begin);
      const float scale = scale_of(x, n);
      std::memcpy(super_block + scales_offset(columns) +
                      (begin / kScaleColumns * kPanelRows + row) * sizeof scale,
                  &scale, sizeof scale);
      for (std::size_t k = 0; k < n; ++k) {
        const float real = scale == 0 ? (x[k] != x[k] ? x[k] : 0.0F) : x[k] / scale;
        super_block[(begin + k) * kPanelRows + row] =
            static_cast<std::byte>(base::float_to_f8_e4m3(real));
      }
    }
}

void F8E4M3::decode(const std::byte* super_block, std::size_t columns, float* values,
                    std::size_t stride) {
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t k = 0; k < columns; ++k) {
      float scale;
      std::memcpy(&scale,
                  super_block + scales_offset(columns) +
                      (k / kScaleColumns * kPanelRows + row) * sizeof scale,
                  sizeof scale);
      const auto code = std::to_integer<base::F8>(super_block[k * kPanelRows + row]);
      values[row * stride + k] = base::f8_e4m3_to_float(code) * scale;
    }
}

}  // namespace quern::quant
