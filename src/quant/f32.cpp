#include "quant/f32.hpp"

#include <cstring>

namespace quern::quant {

void F32::encode(const float* values, std::size_t stride, std::size_t columns, const float*,
                 std::byte* super_block) {
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t k = 0; k < columns; ++k)
      std::memcpy(super_block + k * kLineBytes + row * 4, values + row * stride + k, 4);
}

void F32::decode(const std::byte* super_block, std::size_t columns, float* values,
                 std::size_t stride) {
  for (std::size_t row = 0; row < kPanelRows; ++row)
    for (std::size_t k = 0; k < columns; ++k)
      std::memcpy(values + row * stride + k, super_block + k * kLineBytes + row * 4, 4);
}

}  // namespace quern::quant
