// Inside of to_float: one function per foreign type, from blocks as they lie in the file to
// float32, and the table that knows every type's name and block size. The order of every product
// and sum is the reference's, so that the values are equal bit for bit.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "checkpoint/checkpoint.hpp"

namespace quern::checkpoint {

using Dequantize = void (*)(const std::byte* blocks, std::uint64_t n_blocks, float* out);

struct DTypeInfo {
  DType type;
  std::string_view name;
  std::uint32_t block_values;
  std::uint32_t block_bytes;
  Dequantize dequantize;
};

const DTypeInfo& dtype_info(DType type);

// The type of a safetensors dtype string or of a GGUF type number; nullptr when there is none.
const DTypeInfo* find_safetensors_type(std::string_view name);
const DTypeInfo* find_gguf_type(std::uint32_t number);
std::string safetensors_type_names();              // "F32, F16, ..." for error lines
std::string gguf_type_name(std::uint32_t number);  // of unsupported and removed types too

// Bytes of foreign files have no alignment: every load goes through memcpy.
template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
inline unsigned byte_at(const std::byte* bytes, std::size_t i) {
  return static_cast<unsigned>(bytes[i]);
}

// f16 to float without a branch, so that loops over it vectorise (exact, NaN payloads kept).
inline float widen_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7FFFu;
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F;
  const std::uint32_t small = std::bit_cast<std::uint32_t>(subnormal);
  const std::uint32_t normal = (magnitude << 13) + (112u << 23);
  const std::uint32_t special = (magnitude << 13) | 0x7F800000u;
  const std::uint32_t finite = magnitude < 0x0400u ? small : normal;
  return std::bit_cast<float>(sign | (magnitude >= 0x7C00u ? special : finite));
}
inline float load_f16(const std::byte* at) {
  return widen_f16(load<std::uint16_t>(at));
}

// 2^(exponent - 128): half of an MXFP4 block's scale, since its table of values is doubled.
inline float half_of_e8m0(unsigned exponent) {
  const std::uint32_t bits = exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23;
  return std::bit_cast<float>(bits);
}

// The sixteen values of the non-linear 4-bit types.
inline constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

// dequant_plain.cpp
void dequantize_f32(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_f16(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_bf16(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_f8_e4m3(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_f8_e5m2(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_f8_e8m0(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_boolean(const std::byte* blocks, std::uint64_t n_blocks, float* out);
template <class T>
void dequantize_number(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t i = 0; i < n_blocks; ++i)
    out[i] = static_cast<float>(load<T>(blocks + i * sizeof(T)));
}

// dequant_blocks32.cpp: blocks of 32 values
void dequantize_q4_0(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_q4_1(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_q5_0(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_q5_1(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_q8_0(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_q8_1(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_iq4_nl(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_mxfp4(const std::byte* blocks, std::uint64_t n_blocks, float* out);

// dequant_k.cpp: super-blocks of 256 values with small integer scales
void dequantize_q2_k(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_q3_k(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_q4_k(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_q5_k(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_q6_k(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_q8_k(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_iq4_xs(const std::byte* blocks, std::uint64_t n_blocks, float* out);

// dequant_grid.cpp: super-blocks of 256 values from codebooks
void dequantize_iq2_xxs(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_iq2_xs(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_iq2_s(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_iq3_xxs(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_iq3_s(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_iq1_s(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_iq1_m(const std::byte* blocks, std::uint64_t n_blocks, float* out);

// dequant_ternary.cpp
void dequantize_tq1_0(const std::byte* blocks, std::uint64_t n_blocks, float* out);
void dequantize_tq2_0(const std::byte* blocks, std::uint64_t n_blocks, float* out);

}  // namespace quern::checkpoint
