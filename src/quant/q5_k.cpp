#include "quant/q5_k.hpp"

#include "quant/k_block.hpp"

namespace quern::quant {

void Q5_K::encode(const float* values, std::size_t stride, std::size_t columns, const float*,
                  std::byte* super_block) {
  encode_k<Q5_K>(values, stride, columns, super_block, 31);
}

void Q5_K::decode(const std::byte* super_block, std::size_t columns, float* values,
                  std::size_t stride) {
  decode_k<Q5_K>(super_block, columns, values, stride);
}

}  // namespace quern::quant
