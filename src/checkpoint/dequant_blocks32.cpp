// Blocks of 32 values with one scale. Codes of 4 bits lie as 16 bytes: value j in the low nibble of
// byte j, value j + 16 in the high one.
#include "checkpoint/dequant.hpp"

namespace quern::checkpoint {

namespace {

constexpr std::size_t kHalf = 16;
constexpr std::size_t kValues = 32;

// The sixteen values of the 4-bit float of MXFP4, doubled.
constexpr std::int8_t kE2m1Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

int low(const std::byte* codes, std::size_t j) {
  return static_cast<int>(byte_at(codes, j) & 0xFu);
}
int high(const std::byte* codes, std::size_t j) {
  return static_cast<int>(byte_at(codes, j) >> 4);
}

// Fifth bits of value j and of value j + 16, moved to bit 4.
int fifth_low(std::uint32_t bits, std::size_t j) {
  return static_cast<int>((bits >> j) << 4 & 0x10u);
}
int fifth_high(std::uint32_t bits, std::size_t j) {
  return static_cast<int>(bits >> (j + 12) & 0x10u);
}

void scale_table(float d, const std::int8_t (&table)[16], const std::byte* codes, float* out) {
  for (std::size_t j = 0; j < kHalf; ++j) {
    out[j] = d * static_cast<float>(table[low(codes, j)]);
    out[j + kHalf] = d * static_cast<float>(table[high(codes, j)]);
  }
}

}  // namespace

// f16 d, codes[16]
void dequantize_q4_0(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 18, out += kValues) {
    const float d = load_f16(blocks);
    const std::byte* codes = blocks + 2;
    for (std::size_t j = 0; j < kHalf; ++j) {
      out[j] = d * static_cast<float>(low(codes, j) - 8);
      out[j + kHalf] = d * static_cast<float>(high(codes, j) - 8);
    }
  }
}

// f16 d, f16 m, codes[16]
void dequantize_q4_1(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 20, out += kValues) {
    const float d = load_f16(blocks), m = load_f16(blocks + 2);
    const std::byte* codes = blocks + 4;
    for (std::size_t j = 0; j < kHalf; ++j) {
      out[j] = d * static_cast<float>(low(codes, j)) + m;
      out[j + kHalf] = d * static_cast<float>(high(codes, j)) + m;
    }
  }
}

// f16 d, u32 fifth bits, codes[16]
void dequantize_q5_0(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 22, out += kValues) {
    const float d = load_f16(blocks);
    const auto bits = load<std::uint32_t>(blocks + 2);
    const std::byte* codes = blocks + 6;
    for (std::size_t j = 0; j < kHalf; ++j) {
      out[j] = d * static_cast<float>((low(codes, j) | fifth_low(bits, j)) - 16);
      out[j + kHalf] = d * static_cast<float>((high(codes, j) | fifth_high(bits, j)) - 16);
    }
  }
}

// f16 d, f16 m, u32 fifth bits, codes[16]
void dequantize_q5_1(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 24, out += kValues) {
    const float d = load_f16(blocks), m = load_f16(blocks + 2);
    const auto bits = load<std::uint32_t>(blocks + 4);
    const std::byte* codes = blocks + 8;
    for (std::size_t j = 0; j < kHalf; ++j) {
      out[j] = d * static_cast<float>(low(codes, j) | fifth_low(bits, j)) + m;
      out[j + kHalf] = d * static_cast<float>(high(codes, j) | fifth_high(bits, j)) + m;
    }
  }
}

// f16 d, i8 codes[32]
void dequantize_q8_0(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 34, out += kValues) {
    const float d = load_f16(blocks);
    for (std::size_t j = 0; j < kValues; ++j)
      out[j] = static_cast<float>(load<std::int8_t>(blocks + 2 + j)) * d;
  }
}

// f16 d, f16 d x sum of codes, i8 codes[32]
void dequantize_q8_1(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 36, out += kValues) {
    const float d = load_f16(blocks);
    for (std::size_t j = 0; j < kValues; ++j)
      out[j] = static_cast<float>(load<std::int8_t>(blocks + 4 + j)) * d;
  }
}

// f16 d, codes[16]
void dequantize_iq4_nl(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 18, out += kValues)
    scale_table(load_f16(blocks), kIq4Values, blocks + 2, out);
}

// u8 exponent, codes[16]
void dequantize_mxfp4(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 17, out += kValues)
    scale_table(half_of_e8m0(byte_at(blocks, 0)), kE2m1Doubled, blocks + 1, out);
}

}  // namespace quern::checkpoint
