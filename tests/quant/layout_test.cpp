// The byte layout of every format, spelled out a second time from docs/FILE_FORMAT.md: random bytes
// decoded by the library must equal what these formulas say. A kernel that agrees with decode()
// then agrees with the document.
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/small_float.hpp"
#include "catch.hpp"
#include "quant/formats.hpp"

using namespace quern;
using quant::FormatId;
using quant::FormatTraits;

namespace {

using Block = std::vector<std::uint8_t>;

float half_at(const Block& b, std::size_t at) {
  return base::f16_to_float(static_cast<std::uint16_t>(b[at] | b[at + 1] << 8));
}

unsigned nibble(const Block& b, std::size_t row, std::size_t column) {
  const std::size_t line = column / 8, inside = column % 8;
  const std::uint8_t byte = b[64 * line + 4 * row + inside % 4];
  return inside < 4 ? byte & 15 : byte >> 4;
}

unsigned fifth_bit(const Block& b, std::size_t start, std::size_t row, std::size_t column) {
  const std::size_t line = column / 8, inside = column % 8;
  const std::size_t bit = 4 * row + inside % 4;  // number of the byte in the line
  const std::size_t word = start + 16 * line + (inside < 4 ? 0 : 8);
  return b[word + bit / 8] >> (bit % 8) & 1U;
}

struct IntGroup {
  std::size_t bits, group, scale_bytes;
};
float int_group_value(const Block& b, std::size_t c, std::size_t row, std::size_t column,
                      const IntGroup& f) {
  const std::size_t scales = 2 * c * f.bits, n_groups = (c + f.group - 1) / f.group;
  const std::size_t place = 16 * (column / f.group) + row;
  float scale;
  if (f.scale_bytes == 4)
    std::memcpy(&scale, &b[scales + 4 * place], 4);
  else
    scale = half_at(b, scales + 2 * place);
  const std::uint8_t zero = b[scales + f.scale_bytes * 16 * n_groups + place];
  if (f.bits == 4)
    return scale * (static_cast<float>(nibble(b, row, column)) - static_cast<float>(zero));
  const std::uint8_t code = b[64 * (column / 4) + 4 * row + column % 4];
  return scale * (static_cast<float>(static_cast<std::int8_t>(code)) -
                  static_cast<float>(static_cast<std::int8_t>(zero)));
}

float value_at(FormatId id, const Block& b, std::size_t c, std::size_t row, std::size_t column) {
  const std::size_t groups = c / 32;
  const std::size_t g = column / 32;
  const std::size_t lines4 = 64 * 4 * groups;
  const std::size_t high = 16 * 4 * groups;
  const std::size_t scale = 2 * (16 * g + row);
  switch (id) {
    case FormatId::f32: {
      float value;
      std::memcpy(&value, &b[64 * column + 4 * row], 4);
      return value;
    }
    case FormatId::bf16: {
      const std::size_t at = 64 * (column / 2) + 4 * row + 2 * (column % 2);
      return base::bf16_to_float(static_cast<std::uint16_t>(b[at] | b[at + 1] << 8));
    }
    case FormatId::f16:
      return half_at(b, 64 * (column / 2) + 4 * row + 2 * (column % 2));
    case FormatId::q8: {
      const auto code = static_cast<std::int8_t>(b[64 * (column / 4) + 4 * row + column % 4]);
      return half_at(b, 64 * 8 * groups + scale) * static_cast<float>(code);
    }
    case FormatId::q4: {
      static constexpr int kTable[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
      const std::uint8_t ids = b[lines4 + 16 * g + row];
      const int id = column % 32 < 16 ? ids & 15 : ids >> 4;
      const int sub_scale = id < 8 ? id + 1 : -(id - 7);
      const double exact = kTable[nibble(b, row, column)] * sub_scale / 8.0;
      return half_at(b, lines4 + 16 * groups + 2 * row) *
             static_cast<float>(std::floor(exact + 0.5));
    }
    case FormatId::q4_0:
      return half_at(b, lines4 + scale) * (static_cast<float>(nibble(b, row, column)) - 8);
    case FormatId::q4_1:
      return half_at(b, lines4 + scale) * static_cast<float>(nibble(b, row, column)) +
             half_at(b, lines4 + 32 * groups + scale);
    case FormatId::q5_0:
    case FormatId::q5_1: {
      const auto u =
          static_cast<float>(nibble(b, row, column) | fifth_bit(b, lines4, row, column) << 4);
      const float d = half_at(b, lines4 + high + scale);
      if (id == FormatId::q5_0) return d * (u - 16);
      return d * u + half_at(b, lines4 + high + 32 * groups + scale);
    }
    case FormatId::q4_k:
    case FormatId::q5_k: {
      const bool five = id == FormatId::q5_k;
      const std::size_t low = lines4 + (five ? high : 0), two = low + 16 * groups;
      const std::size_t d = two + 16 * ((groups + 1) / 2), shift = g % 2 == 0 ? 0 : 4;
      const unsigned both = b[low + 16 * g + row], pair = b[two + 16 * (g / 2) + row] >> shift & 15U;
      const auto scale_steps = static_cast<float>((both & 15U) + 16 * (pair & 3U));
      const auto minimum_steps = static_cast<float>((both >> 4) + 16 * (pair >> 2));
      const unsigned fifth = five ? fifth_bit(b, lines4, row, column) : 0;
      const auto u = static_cast<float>(nibble(b, row, column) | fifth << 4);
      return half_at(b, d + 2 * row) * scale_steps * u - half_at(b, d + 32 + 2 * row) * minimum_steps;
    }
    case FormatId::q6_k: {
      const std::size_t pairs = lines4, scales = pairs + 64 * 2 * groups, d = scales + 16 * 2 * groups;
      const std::size_t s = column / 16;
      const unsigned top = b[pairs + 64 * s + 4 * row + column % 4] >> (2 * (column % 16 / 4)) & 3U;
      const auto u = static_cast<float>(nibble(b, row, column) | top << 4);
      const auto steps = static_cast<std::int8_t>(b[scales + 16 * s + row]);
      return half_at(b, d + 2 * row) * static_cast<float>(steps) * (u - 32);
    }
    case FormatId::mxfp4: {
      static constexpr float kTable[8] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
      const unsigned u = nibble(b, row, column);
      const float magnitude = std::ldexp(kTable[u % 8], b[lines4 + 16 * g + row] - 127);
      return u > 8 ? -magnitude : magnitude;
    }
    case FormatId::int4_g32:
      return int_group_value(b, c, row, column, {4, 32, 2});
    case FormatId::int4_g64:
      return int_group_value(b, c, row, column, {4, 64, 2});
    case FormatId::int4_g128:
      return int_group_value(b, c, row, column, {4, 128, 2});
    case FormatId::int4_f32:
      return int_group_value(b, c, row, column, {4, 32, 4});
    case FormatId::int8_g32:
      return int_group_value(b, c, row, column, {8, 32, 4});
    case FormatId::int8_g128:
      return int_group_value(b, c, row, column, {8, 128, 4});
    case FormatId::f8_e4m3: {
      float scale;
      std::memcpy(&scale, &b[16 * c + 4 * (16 * (column / 128) + row)], 4);
      return scale * base::f8_e4m3_to_float(b[16 * column + row]);
    }
    default:
      FAIL("a format without a layout in this test");
      return 0;
  }
}

}  // namespace

TEST_CASE("decode reads the documented layout of every format") {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> byte(0, 255);
  for (const FormatTraits& format : quant::all_formats())
    for (std::size_t c = format.column_step; c <= 256; c += format.column_step * (c < 8 ? 1 : 2)) {
      Block block(format.super_block_bytes(c));
      for (std::uint8_t& b : block) b = static_cast<std::uint8_t>(byte(random));
      std::vector<float> values(16 * c);
      format.decode(reinterpret_cast<const std::byte*>(block.data()), c, values.data(), c);
      bool equal = true;
      for (std::size_t row = 0; row < 16; ++row)
        for (std::size_t k = 0; k < c; ++k) {
          const float expected = value_at(format.id, block, c, row, k);
          const float got = values[row * c + k];
          const bool both_nan = std::isnan(expected) && std::isnan(got);
          const bool both_zero = expected == 0 && got == 0;  // of either sign
          if (!both_nan && !both_zero && std::memcmp(&expected, &got, 4) != 0) equal = false;
        }
      INFO(format.name << " with " << c << " columns");
      CHECK(equal);
      bool same_row = true;
      std::vector<float> one(c);
      for (std::size_t row = 0; row < 16; ++row) {
        format.decode_row(reinterpret_cast<const std::byte*>(block.data()), c, row, one.data());
        for (std::size_t k = 0; k < c; ++k) {
          const bool both_nan = std::isnan(one[k]) && std::isnan(values[row * c + k]);
          if (!both_nan && std::memcmp(&one[k], &values[row * c + k], 4) != 0) same_row = false;
        }
      }
      CHECK(same_row);
    }
}

TEST_CASE("q4 tables fit int8 and follow the 16-bit rounding multiply") {
  for (unsigned id = 0; id < 16; ++id)
    for (unsigned u = 0; u < 16; ++u) {
      const int value = quant::Q4::table(id, u);
      CHECK(value >= -127);
      CHECK(value <= 127);
      // pmulhrsw: ((a * b >> 14) + 1) >> 1 of 16-bit a, b.
      const int product = quant::Q4::kBase[u] * (quant::Q4::sub_scale(id) * 4096);
      CHECK(value == ((product >> 14) + 1) >> 1);
    }
}
