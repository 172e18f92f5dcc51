#include "quant/q4_1.hpp"

#include "quant/uniform_fit.hpp"

namespace quern::quant {

void Q4_1::encode(const float* values, std::size_t stride, std::size_t columns,
                  const float* importance, std::byte* super_block) {
  GroupedBlock block;
  fit_block(values, stride, columns, importance, block,
            [](const float* x, const float* weights) { return fit_affine(x, weights, 15); });
  store_block<Q4_1>(block, columns, super_block);
}

void Q4_1::decode(const std::byte* super_block, std::size_t columns, float* values,
                  std::size_t stride) {
  decode_grouped<Q4_1>(super_block, columns, values, stride, 0);
}

void Q4_1::decode_row(const std::byte* super_block, std::size_t columns, std::size_t row, float* values) {
  decode_grouped_row<Q4_1>(super_block, columns, row, values, 0);
}

}  // namespace quern::quant
