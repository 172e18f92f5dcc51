#include <array>
#include <limits>

#include "base/small_float.hpp"
#include "checkpoint/dequant.hpp"

namespace quern::checkpoint {

namespace {

template <class Convert>
std::array<float, 256> table_of(Convert convert) {
  std::array<float, 256> table{};
  for (unsigned i = 0; i < 256; ++i) table[i] = convert(static_cast<base::F8>(i));
  return table;
}

}  // namespace

void dequantize_f32(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  if (n_blocks != 0) std::memcpy(out, blocks, n_blocks * sizeof(float));
}

void dequantize_f16(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t i = 0; i < n_blocks; ++i) out[i] = load_f16(blocks + 2 * i);
}

void dequantize_bf16(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t i = 0; i < n_blocks; ++i)
    out[i] = base::bf16_to_float(load<std::uint16_t>(blocks + 2 * i));
}

void dequantize_f8_e4m3(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  static const std::array<float, 256> table = table_of(base::f8_e4m3_to_float);
  for (std::uint64_t i = 0; i < n_blocks; ++i) out[i] = table[byte_at(blocks, i)];
}

void dequantize_f8_e5m2(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  static const std::array<float, 256> table = table_of(base::f8_e5m2_to_float);
  for (std::uint64_t i = 0; i < n_blocks; ++i) out[i] = table[byte_at(blocks, i)];
}

// A scale: 2^(bits - 127), 255 is NaN.
void dequantize_f8_e8m0(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t i = 0; i < n_blocks; ++i) {
    const unsigned exponent = byte_at(blocks, i);
    out[i] = exponent == 255 ? std::numeric_limits<float>::quiet_NaN() : 2 * half_of_e8m0(exponent);
  }
}

void dequantize_boolean(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t i = 0; i < n_blocks; ++i) out[i] = byte_at(blocks, i) != 0 ? 1.0F : 0.0F;
}

}  // namespace quern::checkpoint
