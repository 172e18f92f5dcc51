// Values -1, 0 and 1 times one f16 scale per 256.
#include <array>

#include "checkpoint/dequant.hpp"

namespace quern::checkpoint {

namespace {

constexpr std::size_t kValues = 256;

// Five ternary digits in one byte as the fraction byte / 256: digit m is the integer part of the
// fraction times 3^(m+1), modulo 3.
float ternary_digit(unsigned byte, unsigned power) {
  const unsigned shifted = byte * power & 0xFFu;
  return static_cast<float>(static_cast<int>(shifted * 3 >> 8) - 1);
}

// `width` bytes give `digits` runs of `width` values.
float* unpack_run(const std::byte* bytes, std::size_t width, std::size_t digits, float d,
                  float* out) {
  static constexpr std::array<unsigned, 5> kPowers = {1, 3, 9, 27, 81};
  for (std::size_t m = 0; m < digits; ++m)
    for (std::size_t j = 0; j < width; ++j)
      *out++ = d * ternary_digit(byte_at(bytes, j), kPowers[m]);
  return out;
}

}  // namespace

// five digits a byte [48], four digits a byte [4], f16 d
void dequantize_tq1_0(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 54) {
    const float d = load_f16(blocks + 52);
    out = unpack_run(blocks, 32, 5, d, out);
    out = unpack_run(blocks + 32, 16, 5, d, out);
    out = unpack_run(blocks + 48, 4, 4, d, out);
  }
}

// 2-bit codes[64], f16 d
void dequantize_tq2_0(const std::byte* blocks, std::uint64_t n_blocks, float* out) {
  for (std::uint64_t b = 0; b < n_blocks; ++b, blocks += 66, out += kValues) {
    const float d = load_f16(blocks + 64);
    for (std::size_t g = 0; g < 8; ++g) {
      const std::byte* codes = blocks + 32 * (g / 4);
      const unsigned shift = 2 * (static_cast<unsigned>(g) % 4);
      for (std::size_t j = 0; j < 32; ++j)
        out[32 * g + j] =
            d * static_cast<float>(static_cast<int>(byte_at(codes, j) >> shift & 3u) - 1);
    }
  }
}

}  // namespace quern::checkpoint
