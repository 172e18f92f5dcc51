// Super-blocks of 256 values: one or two f16 scales times small integer scales per 16 or 32 values.
#include <array>

#include "checkpoint/dequant.hpp"

namespace quern::checkpoint {

namespace {

constexpr std::size_t kValues = 256;

// Eight 6-bit scales and eight 6-bit minimums in 12 bytes: 0-3 in the low six bits of bytes 0-3 and
// 4-7, 4-7 in nibbles of bytes 8-11 below the top two bits of bytes 0-7.
struct ScalesAndMins {
  std::array<float, 8> scale;
  std::array<float, 8> min;
};
ScalesAndMins unpack_scales(const std::byte* bytes, float d, float dmin) {
  ScalesAndMins out{};
  for (std::size_t g = 0; g < 4; ++g) {
    const unsigned a = byte_at(bytes, g), m = byte_at(bytes, g + 4), rest = byte_at(bytes, g + 8);
    out.scale[g] = d * static_cast<float>(a & 0x3Fu);
    out.min[g] = dmin * static_cast<float>(m & 0x3Fu);
    out.scale[g + 4] = d * static_cast<float>((rest & 0xFu) | (a >> 2 & 0x30u));
    out.min[g + 4] = dmin * static_cast<float>(rest >> 4 | (m >> 2 & 0x30u));
  }
  return out;
}

// Sixteen 6-bit scales, minus 32, in 12 bytes: low nibbles of 0-7, high nibbles of 0-7 for 8-15,
// then two bits each in bytes 8-11.
float q3_scale(const std::byte* bytes, std::size_t i) {
  const unsigned low = i < 8 ? byte_at(bytes, i) & 0xFu : byte_at(bytes, i - 8) >> 4;
  const unsigned high = byte_at(bytes, 8 + i % 4) >> (2 * (i / 4)) & 3u;
  return static_cast<float>(static_cast<int>(low | high << 4) - 32);
}

}  // namespace

// u8 scales[16] (scale | min << 4), 2-bit codes[64], f16 d, f16 dmin
void dequantize_q2_k(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 84, out += kValues) {
    const float d = load_f16(blocks + 80), dmin = load_f16(blocks + 82);
    for (std::size_t s = 0; s < 16; ++s) {
      const unsigned packed = byte_at(blocks, s);
      const float dl = d * static_cast<float>(packed & 0xFu);
      const float ml = dmin * static_cast<float>(packed >> 4);
      const std::byte* codes = blocks + 16 + 32 * (s / 8) + 16 * (s % 2);
      const unsigned shift = 2 * (static_cast<unsigned>(s) % 8 / 2);
      for (std::size_t j = 0; j < 16; ++j)
        out[16 * s + j] = dl * static_cast<float>(byte_at(codes, j) >> shift & 3u) - ml;
    }
  }
}

// third bits[32] (a set bit adds 4), 2-bit codes[64], scales[12], f16 d
void dequantize_q3_k(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 110, out += kValues) {
    const float d = load_f16(blocks + 108);
    for (std::size_t s = 0; s < 16; ++s) {
      const float dl = d * q3_scale(blocks + 96, s);
      const std::byte* codes = blocks + 32 + 32 * (s / 8) + 16 * (s % 2);
      const std::byte* third = blocks + 16 * (s % 2);
      const unsigned shift = 2 * (static_cast<unsigned>(s) % 8 / 2);
      const unsigned bit = static_cast<unsigned>(s) / 2;
      for (std::size_t j = 0; j < 16; ++j) {
        const int code = static_cast<int>(byte_at(codes, j) >> shift & 3u);
        const int more = static_cast<int>(byte_at(third, j) >> bit & 1u);
        out[16 * s + j] = dl * static_cast<float>(code + 4 * more - 4);
      }
    }
  }
}

// f16 d, f16 dmin, scales[12], 4-bit codes[128]
void dequantize_q4_k(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 144, out += kValues) {
    const ScalesAndMins s = unpack_scales(blocks + 4, load_f16(blocks), load_f16(blocks + 2));
    for (std::size_t g = 0; g < 8; ++g) {
      const std::byte* codes = blocks + 16 + 32 * (g / 2);
      const unsigned shift = 4 * (static_cast<unsigned>(g) % 2);
      const float dl = s.scale[g], ml = s.min[g];
      for (std::size_t j = 0; j < 32; ++j)
        out[32 * g + j] = dl * static_cast<float>(byte_at(codes, j) >> shift & 0xFu) - ml;
    }
  }
}

// f16 d, f16 dmin, scales[12], fifth bits[32], 4-bit codes[128]
void dequantize_q5_k(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 176, out += kValues) {
    const ScalesAndMins s = unpack_scales(blocks + 4, load_f16(blocks), load_f16(blocks + 2));
    const std::byte* fifth = blocks + 16;
    for (std::size_t g = 0; g < 8; ++g) {
      const std::byte* codes = blocks + 48 + 32 * (g / 2);
      const unsigned shift = 4 * (static_cast<unsigned>(g) % 2), bit = static_cast<unsigned>(g);
      const float dl = s.scale[g], ml = s.min[g];
      for (std::size_t j = 0; j < 32; ++j) {
        const unsigned code = (byte_at(codes, j) >> shift & 0xFu) | (byte_at(fifth, j) >> bit & 1u)
                                                                        << 4;
        out[32 * g + j] = dl * static_cast<float>(code) - ml;
      }
    }
  }
}

// low 4 bits[128], high 2 bits[64], i8 scales[16], f16 d
void dequantize_q6_k(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 210, out += kValues) {
    const float d = load_f16(blocks + 208);
    for (std::size_t s = 0; s < 16; ++s) {
      const float dl = d * static_cast<float>(load<std::int8_t>(blocks + 192 + s));
      const std::size_t group = s / 2, inside = 16 * (s % 2);  // groups of 32 values
      const std::byte* low = blocks + 64 * (group / 4) + 32 * (group % 2) + inside;
      const std::byte* high = blocks + 128 + 32 * (group / 4) + inside;
      const unsigned low_shift = 4 * (static_cast<unsigned>(group) % 4 / 2);
      const unsigned high_shift = 2 * (static_cast<unsigned>(group) % 4);
      for (std::size_t j = 0; j < 16; ++j) {
        const unsigned code =
            (byte_at(low, j) >> low_shift & 0xFu) | (byte_at(high, j) >> high_shift & 3u) << 4;
        out[16 * s + j] = dl * static_cast<float>(static_cast<int>(code) - 32);
      }
    }
  }
}

// f32 d, i8 codes[256], i16 sums[16]
void dequantize_q8_k(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 292, out += kValues) {
    const float d = load<float>(blocks);
    for (std::size_t j = 0; j < kValues; ++j)
      out[j] = d * static_cast<float>(load<std::int8_t>(blocks + 4 + j));
  }
}

// f16 d, u16 high bits of the scales, u8 low nibbles[4], 4-bit codes[128]
void dequantize_iq4_xs(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 136, out += kValues) {
    const float d = load_f16(blocks);
    const unsigned high = load<std::uint16_t>(blocks + 2);
    for (std::size_t g = 0; g < 8; ++g) {
      const unsigned low = byte_at(blocks, 4 + g / 2) >> (4 * (g % 2)) & 0xFu;
      const int scale = static_cast<int>(low | (high >> (2 * g) & 3u) << 4) - 32;
      const float dl = d * static_cast<float>(scale);
      const std::byte* codes = blocks + 8 + 16 * g;
      for (std::size_t j = 0; j < 16; ++j) {
        out[32 * g + j] = dl * static_cast<float>(kIq4Values[byte_at(codes, j) & 0xFu]);
        out[32 * g + 16 + j] = dl * static_cast<float>(kIq4Values[byte_at(codes, j) >> 4]);
      }
    }
  }
}

}  // namespace quern::checkpoint
