// Super-blocks of 256 values whose groups of 8 or 4 are entries of a codebook, with signs or an
// offset. The codebooks are unpacked to one byte a value at first use.
#include <array>

#include "checkpoint/dequant.hpp"
#include "checkpoint/gguf_grids.hpp"

namespace quern::checkpoint {

namespace {

constexpr std::size_t kValues = 256;

template <std::size_t N, std::size_t Width>
using Grid = std::array<std::array<std::int8_t, Width>, N>;

template <std::size_t Width, std::size_t N, std::size_t M>
Grid<N, Width> unpack(const std::array<std::uint16_t, N>& words, const std::int8_t (&map)[M]) {
  constexpr unsigned kBits = 16 / Width;
  Grid<N, Width> grid{};
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t j = 0; j < Width; ++j)
      grid[i][j] = map[(words[i] >> (kBits * j) & ((1u << kBits) - 1u)) % M];
  return grid;
}

constexpr std::int8_t kTwoBitMap[3] = {0x08, 0x19, 0x2B};
constexpr std::int8_t kThreeBitXxsMap[8] = {0x04, 0x0C, 0x14, 0x1C, 0x24, 0x2C, 0x34, 0x3E};
constexpr std::int8_t kThreeBitMap[8] = {0x01, 0x03, 0x05, 0x07, 0x09, 0x0B, 0x0D, 0x0F};
constexpr std::int8_t kTernaryMap[3] = {-1, 0, 1};
constexpr float kDelta = 0.125F;

// Seven stored sign bits; the eighth makes their number even.
unsigned even_signs(unsigned seven) {
  return seven | (static_cast<unsigned>(std::popcount(seven)) & 1u) << 7;
}

// Bit first_bit + j of `signs` negates value j.
template <std::size_t Width>
void put_signed(float d, const std::array<std::int8_t, Width>& entry, unsigned signs, float* out) {
  for (std::size_t j = 0; j < Width; ++j) {
    const int value = (signs >> j & 1u) != 0 ? -entry[j] : entry[j];
    out[j] = d * static_cast<float>(value);
  }
}

void put_offset(float d, const std::array<std::int8_t, 8>& entry, bool negative, float* out) {
  const float delta = negative ? -kDelta : kDelta;
  for (std::size_t j = 0; j < 8; ++j) out[j] = d * (static_cast<float>(entry[j]) + delta);
}

// The scale of 16 values in 2-bit types: nibble `i` of `scales`.
float nibble_scale(float d, const std::byte* scales, std::size_t i) {
  const unsigned nibble = byte_at(scales, i / 2) >> (4 * (i % 2)) & 0xFu;
  return d * (0.5F + static_cast<float>(nibble)) * 0.25F;
}

const Grid<2048, 8>& iq1_grid() {
  static const auto grid = unpack<8>(kIq1Grid, kTernaryMap);
  return grid;
}

}  // namespace

// f16 d, 8 x (u8 index[4], u32: 4 x 7 sign bits, 4-bit scale)
void dequantize_iq2_xxs(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  static const auto grid = unpack<8>(kIq2XxsGrid, kTwoBitMap);
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 66, out += kValues) {
    const float d = load_f16(blocks);
    for (std::size_t g = 0; g < 8; ++g) {
      const std::byte* group = blocks + 2 + 8 * g;
      const auto signs = load<std::uint32_t>(group + 4);
      const float db = d * (0.5F + static_cast<float>(signs >> 28)) * 0.25F;
      for (std::size_t k = 0; k < 4; ++k)
        put_signed(db, grid[byte_at(group, k)], even_signs(signs >> (7 * k) & 0x7Fu),
                   out + 32 * g + 8 * k);
    }
  }
}

// f16 d, u16[32]: 9-bit index, 7 sign bits; u8 scales[8]
void dequantize_iq2_xs(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  static const auto grid = unpack<8>(kIq2XsGrid, kTwoBitMap);
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 74, out += kValues) {
    const float d = load_f16(blocks);
    for (std::size_t k = 0; k < 32; ++k) {
      const unsigned code = load<std::uint16_t>(blocks + 2 + 2 * k);
      put_signed(nibble_scale(d, blocks + 66, k / 2), grid[code & 511u], even_signs(code >> 9),
                 out + 8 * k);
    }
  }
}

// f16 d, u8 index[32], u8 signs[32], 2 high bits of the index[8], u8 scales[8]
void dequantize_iq2_s(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  static const auto grid = unpack<8>(kIq2SGrid, kTwoBitMap);
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 82, out += kValues) {
    const float d = load_f16(blocks);
    for (std::size_t k = 0; k < 32; ++k) {
      const unsigned high = byte_at(blocks, 66 + k / 4) >> (2 * (k % 4)) & 3u;
      put_signed(nibble_scale(d, blocks + 74, k / 2), grid[byte_at(blocks, 2 + k) | high << 8],
                 byte_at(blocks, 34 + k), out + 8 * k);
    }
  }
}

// f16 d, u8 index[64], u32[8]: 4 x 7 sign bits, 4-bit scale
void dequantize_iq3_xxs(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  static const auto grid = unpack<4>(kIq3XxsGrid, kThreeBitXxsMap);
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 98, out += kValues) {
    const float d = load_f16(blocks);
    for (std::size_t g = 0; g < 8; ++g) {
      const auto packed = load<std::uint32_t>(blocks + 66 + 4 * g);
      const float db = d * (0.5F + static_cast<float>(packed >> 28)) * 0.5F;
      for (std::size_t k = 0; k < 8; ++k) {
        const unsigned signs = even_signs(packed >> (7 * (k / 2)) & 0x7Fu) >> (4 * (k % 2));
        put_signed(db, grid[byte_at(blocks, 2 + 8 * g + k)], signs, out + 32 * g + 4 * k);
      }
    }
  }
}

// f16 d, u8 index[64], ninth bit of the index[8], u8 signs[32], u8 scales[4]
void dequantize_iq3_s(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  static const auto grid = unpack<4>(kIq3SGrid, kThreeBitMap);
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 110, out += kValues) {
    const float d = load_f16(blocks);
    for (std::size_t k = 0; k < 64; ++k) {
      const std::size_t g = k / 8;
      const unsigned nibble = byte_at(blocks, 106 + g / 2) >> (4 * (g % 2)) & 0xFu;
      const float db = d * static_cast<float>(1 + 2 * nibble);
      const unsigned high = byte_at(blocks, 66 + g) >> (k % 8) & 1u;
      const unsigned signs = byte_at(blocks, 74 + k / 2) >> (4 * (k % 2));
      put_signed(db, grid[byte_at(blocks, 2 + k) | high << 8], signs, out + 4 * k);
    }
  }
}

// f16 d, u8 index[32], u16[8]: 4 x 3 high bits of the index, 3-bit scale, sign of the offset
void dequantize_iq1_s(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  const auto& grid = iq1_grid();
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 50, out += kValues) {
    const float d = load_f16(blocks);
    for (std::size_t g = 0; g < 8; ++g) {
      const unsigned packed = load<std::uint16_t>(blocks + 34 + 2 * g);
      const float dl = d * static_cast<float>(2 * (packed >> 12 & 7u) + 1);
      for (std::size_t k = 0; k < 4; ++k) {
        const unsigned index = byte_at(blocks, 2 + 4 * g + k) | (packed >> (3 * k) & 7u) << 8;
        put_offset(dl, grid[index], (packed & 0x8000u) != 0, out + 32 * g + 8 * k);
      }
    }
  }
}

// u8 index[32], 4 bits[32]: 3 high bits of the index, sign of the offset; u16[4]: 4 x 3-bit scale
// and four bits of the f16 d
void dequantize_iq1_m(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  const auto& grid = iq1_grid();
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 56, out += kValues) {
    std::array<unsigned, 4> scales{};
    unsigned d_bits = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      scales[i] = load<std::uint16_t>(blocks + 48 + 2 * i);
      d_bits |= (scales[i] >> 12) << (4 * i);
    }
    const float d = widen_f16(static_cast<std::uint16_t>(d_bits));
    for (std::size_t k = 0; k < 32; ++k) {
      const unsigned scale = scales[k / 8] >> (3 * (k / 2 % 4)) & 7u;
      const unsigned high = byte_at(blocks, 32 + k / 2) >> (4 * (k % 2)) & 0xFu;
      put_offset(d * static_cast<float>(2 * scale + 1), grid[byte_at(blocks, k) | (high & 7u) << 8],
                 (high & 8u) != 0, out + 8 * k);
    }
  }
}

}  // namespace quern::checkpoint
