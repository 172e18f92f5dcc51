#include "quant/q5_0.hpp"

#include "quant/uniform_fit.hpp"

namespace quern::quant {

void Q5_0::encode(const float* values, std::size_t stride, std::size_t columns,
                  const float* importance, std::byte* super_block) {
  GroupedBlock block;
  fit_block(values, stride, columns, importance, block,
            [](const float* x, const float* weights) { return fit_symmetric(x, weights, kZero); });
  store_block<Q5_0>(block, columns, super_block);
}

void Q5_0::decode(const std::byte* super_block, std::size_t columns, float* values,
                  std::size_t stride) {
  decode_grouped<Q5_0>(super_block, columns, values, stride, kZero);
}

void Q5_0::decode_row(const std::byte* super_block, std::size_t columns, std::size_t row, float* values) {
  decode_grouped_row<Q5_0>(super_block, columns, row, values, kZero);
}

}  // namespace quern::quant
