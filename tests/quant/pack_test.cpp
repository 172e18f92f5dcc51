// Packing GGUF blocks: the values of a packed row equal GGUF's own, bit for bit.
#include "quant/pack.hpp"

#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include "base/small_float.hpp"
#include "catch.hpp"
#include "quant/formats.hpp"

using namespace quern;
using quant::FormatTraits;

namespace {

struct Kept {
  const char* format;
  std::size_t block_bytes;
};
constexpr Kept kKept[] = {{"q4_0", 18}, {"q4_1", 20}, {"q5_0", 22}, {"q5_1", 24}, {"q8", 34}};

// Dequantization as the GGUF documents state it, one weight at a time.
float gguf_value(const Kept& kept, const std::uint8_t* row, std::size_t column) {
  const std::uint8_t* b = row + column / 32 * kept.block_bytes;
  const std::size_t j = column % 32;
  const auto half = [&](std::size_t at) {
    return base::f16_to_float(static_cast<std::uint16_t>(b[at] | b[at + 1] << 8));
  };
  const auto code = [&](std::size_t at) -> unsigned {
    return j < 16 ? b[at + j] & 15U : b[at + j - 16] >> 4;
  };
  const auto fifth = [&](std::size_t at) -> unsigned {
    return (b[at + j / 8] >> (j % 8) & 1U) * 16;
  };
  switch (kept.block_bytes) {
    case 18:
      return half(0) * (static_cast<float>(code(2)) - 8);
    case 20:
      return half(0) * static_cast<float>(code(4)) + half(2);
    case 22:
      return half(0) * (static_cast<float>(code(6) + fifth(2)) - 16);
    case 24:
      return half(0) * static_cast<float>(code(8) + fifth(4)) + half(2);
    default:
      return half(0) * static_cast<float>(static_cast<std::int8_t>(b[2 + j]));
  }
}

std::vector<std::byte> pack(const FormatTraits& format, const std::vector<std::uint8_t>& blocks,
                            std::size_t n_rows, std::size_t columns) {
  const std::byte* rows[16] = {};
  const std::size_t row_bytes = quant::gguf_row_bytes(format, columns);
  for (std::size_t row = 0; row < n_rows; ++row)
    rows[row] = reinterpret_cast<const std::byte*>(blocks.data()) + row * row_bytes;
  std::vector<std::byte> panel(quant::panel_bytes(format, columns), std::byte{0xA5});
  quant::pack_gguf_rows(format, rows, columns, panel.data());
  return panel;
}

bool row_equals(const FormatTraits& format, const std::vector<std::byte>& panel, std::size_t row,
                const std::vector<float>& expected) {
  std::vector<float> got(expected.size());
  quant::decode_row(format, panel.data(), row, expected.size(), got.data());
  return std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("packed random blocks decode to GGUF's values, rows of padding to zero") {
  std::mt19937 random(21);
  for (const Kept& kept : kKept)
    for (const std::size_t columns : {32UL, 64UL, 256UL, 288UL, 576UL, 1024UL}) {
      const FormatTraits& format = *quant::find_format(kept.format);
      const std::size_t row_bytes = columns / 32 * kept.block_bytes;
      REQUIRE(quant::gguf_row_bytes(format, columns) == row_bytes);
      const std::size_t n_rows = columns % 64 == 0 ? 16 : 5;
      std::vector<std::uint8_t> blocks(n_rows * row_bytes);
      for (std::uint8_t& byte : blocks) byte = static_cast<std::uint8_t>(random());
      for (std::size_t at = 0; at < blocks.size(); at += kept.block_bytes) {
        blocks[at + 1] &= 0xBB;  // finite scale and minimum, of either sign
        if (kept.block_bytes == 20 || kept.block_bytes == 24) blocks[at + 3] &= 0xBB;
      }
      const auto panel = pack(format, blocks, n_rows, columns);
      for (std::size_t row = 0; row < 16; ++row) {
        std::vector<float> expected(columns, 0.0F);
        for (std::size_t k = 0; k < columns && row < n_rows; ++k)
          expected[k] = gguf_value(kept, blocks.data() + row * row_bytes, k);
        INFO(kept.format << " " << columns << " columns, row " << row);
        CHECK(row_equals(format, panel, row, expected));
      }
    }
}

TEST_CASE("packed blocks of a file decode to the values of its float oracle") {
  constexpr std::size_t kRows = 3, kColumns = 512;
  std::ifstream file(QUERN_SOURCE_DIR "/tests/data/quant/gguf_blocks.bin", std::ios::binary);
  REQUIRE(file.good());
  for (const Kept& kept : kKept) {
    const FormatTraits& format = *quant::find_format(kept.format);
    std::vector<std::uint8_t> blocks(kRows * kColumns / 32 * kept.block_bytes);
    std::vector<float> oracle(kRows * kColumns);
    file.read(reinterpret_cast<char*>(blocks.data()), static_cast<std::streamsize>(blocks.size()));
    file.read(reinterpret_cast<char*>(oracle.data()),
              static_cast<std::streamsize>(oracle.size() * sizeof(float)));
    REQUIRE(file.good());
    const auto panel = pack(format, blocks, kRows, kColumns);
    for (std::size_t row = 0; row < kRows; ++row) {
      const auto begin = oracle.begin() + static_cast<std::ptrdiff_t>(row * kColumns);
      INFO(kept.format << " row " << row);
      CHECK(row_equals(format, panel, row, {begin, begin + kColumns}));
    }
  }
}

TEST_CASE("only the keep formats take GGUF blocks") {
  for (const char* name : {"f32", "bf16", "f16", "q4", "int4_g128", "int8_g128", "f8_e4m3"})
    CHECK(quant::gguf_row_bytes(*quant::find_format(name), 256) == 0);
}
