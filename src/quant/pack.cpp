#include "quant/pack.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "quant/formats.hpp"
#include "quant/grouped_block.hpp"
#include "quant/k_block.hpp"
#include "quant/q6_block.hpp"

namespace quern::quant {

namespace {

// A GGUF block of 32 weights: f16 scale, f16 minimum (Q4_1, Q5_1), u32 of fifth bits (Q5_0, Q5_1),
// then 16 bytes of which byte k holds the codes of columns k (low nibble) and k + 16 (high nibble).
template <class F>
struct GgufBlock {
  static constexpr std::size_t kMinimum = 2;
  static constexpr std::size_t kHighBits = F::kHasMinimum ? 4 : 2;
  static constexpr std::size_t kCodes = kHighBits + (kHasHighBits<F> ? 4 : 0);
  static constexpr std::size_t kBytes = kCodes + 16;
};
constexpr std::size_t kQ8BlockBytes = 2 + kGroupColumns;  // f16 scale, 32 int8

template <class F>
void read_gguf_block(const std::byte* in, std::size_t row, std::size_t group, GroupedBlock& block) {
  using Layout = GgufBlock<F>;
  std::memcpy(&block.scales[group][row], in, 2);
  if constexpr (F::kHasMinimum) std::memcpy(&block.minima[group][row], in + Layout::kMinimum, 2);
  std::uint8_t* codes = block.codes[row] + group * kGroupColumns;
  for (std::size_t k = 0; k < kGroupColumns; ++k) {
    unsigned code = get_bits(in[Layout::kCodes + k % 16], k < 16 ? 0 : 4, 15);
    if constexpr (kHasHighBits<F>)
      code |= get_bits(in[Layout::kHighBits + k / 8], static_cast<unsigned>(k % 8), 1) << 4;
    codes[k] = static_cast<std::uint8_t>(code);
  }
}

template <class F>
void pad_row(std::size_t row, std::size_t columns, GroupedBlock& block) {
  unsigned zero = 0;
  if constexpr (!F::kHasMinimum) zero = static_cast<unsigned>(F::kZero);
  std::fill_n(block.codes[row], columns, static_cast<std::uint8_t>(zero));
  for (std::size_t group = 0; group < columns / kGroupColumns; ++group)
    block.scales[group][row] = block.minima[group][row] = 0;
}

template <class F>
void pack_nibbles(const std::byte* const rows[kPanelRows], std::size_t first_group,
                  std::size_t columns, std::byte* super_block) {
  GroupedBlock block;
  for (std::size_t row = 0; row < kPanelRows; ++row) {
    if (rows[row] == nullptr) {
      pad_row<F>(row, columns, block);
      continue;
    }
    for (std::size_t group = 0; group < columns / kGroupColumns; ++group)
      read_gguf_block<F>(rows[row] + (first_group + group) * GgufBlock<F>::kBytes, row, group,
                         block);
  }
  store_block<F>(block, columns, super_block);
}

void pack_q8(const std::byte* const rows[kPanelRows], std::size_t first_group, std::size_t columns,
             std::byte* super_block) {
  std::memset(super_block, 0, Q8::super_block_bytes(columns));
  for (std::size_t row = 0; row < kPanelRows; ++row) {
    if (rows[row] == nullptr) continue;
    for (std::size_t group = 0; group < columns / kGroupColumns; ++group) {
      const std::byte* in = rows[row] + (first_group + group) * kQ8BlockBytes;
      std::byte* scales = super_block + Q8::scales_offset(columns);
      std::memcpy(scales + (group * kPanelRows + row) * 2, in, 2);
      for (std::size_t k = 0; k < kGroupColumns; k += 4) {  // 4 columns of a row lie together
        const std::size_t line = (group * kGroupColumns + k) / 4;
        std::memcpy(super_block + line * kLineBytes + row * 4, in + 2 + k, 4);
      }
    }
  }
}

// GGUF super-blocks of 256 weights: Q4_K and Q5_K are f16 d, f16 dmin, 12 bytes of scales and minima,
// fifth bits of Q5_K [32], codes[128]. Sub-block j has 32 weights.
template <class F>
void read_k_block(const std::byte* in, std::size_t row, KBlock& block) {
  std::memcpy(&block.d[row], in, 2);
  std::memcpy(&block.dmin[row], in + 2, 2);
  const auto packed = [&](std::size_t i) { return std::to_integer<unsigned>(in[4 + i]); };
  for (std::size_t j = 0; j < 4; ++j) {
    block.scales[j][row] = static_cast<std::uint8_t>(packed(j) & 63u);
    block.minima[j][row] = static_cast<std::uint8_t>(packed(j + 4) & 63u);
    block.scales[j + 4][row] =
        static_cast<std::uint8_t>((packed(j + 8) & 15u) | packed(j) >> 6 << 4);
    block.minima[j + 4][row] =
        static_cast<std::uint8_t>(packed(j + 8) >> 4 | packed(j + 4) >> 6 << 4);
  }
  const std::byte* high = in + 16;
  const std::byte* low = high + (kHasHighBits<F> ? 32 : 0);
  for (std::size_t k = 0; k < kSuperColumns; ++k) {
    const std::size_t j = k / 32;
    unsigned code = get_bits(low[j / 2 * 32 + k % 32], j % 2 == 0 ? 0 : 4, 15);
    if constexpr (kHasHighBits<F>)
      code |= get_bits(high[k % 32], static_cast<unsigned>(j), 1) << 4;
    block.codes[row][k] = static_cast<std::uint8_t>(code);
  }
}

template <class F>
void pack_k(const std::byte* const rows[kPanelRows], std::size_t first_group, std::size_t columns,
            std::byte* super_block) {
  constexpr std::size_t kBytes = kHasHighBits<F> ? 176 : 144;
  KBlock block;
  for (std::size_t row = 0; row < kPanelRows; ++row)
    if (rows[row] != nullptr)
      read_k_block<F>(rows[row] + first_group * kGroupColumns / kSuperColumns * kBytes, row, block);
  store_k<F>(block, columns, super_block);
}

// Q6_K: low nibbles[128], high bit pairs[64], i8 scales[16], f16 d. Half n of 128 weights, quarter q of
// 32: low nibbles in bytes 64n + 32(q % 2), the low ones for q < 2; bits 2q of the bytes 32n.
constexpr std::size_t kQ6BlockBytes = 210;
void read_q6_block(const std::byte* in, std::size_t row, Q6Block& block) {
  for (std::size_t k = 0; k < kSuperColumns; ++k) {
    const std::size_t half = k / 128, quarter = k % 128 / 32;
    const unsigned low = get_bits(in[64 * half + quarter % 2 * 32 + k % 32], quarter < 2 ? 0 : 4, 15);
    const unsigned high =
        get_bits(in[128 + 32 * half + k % 32], static_cast<unsigned>(2 * quarter), 3);
    block.codes[row][k] = static_cast<std::uint8_t>(low | high << 4);
  }
  for (std::size_t g = 0; g < Q6Block::kGroups; ++g)
    block.scales[g][row] = static_cast<std::int8_t>(in[192 + g]);
  std::memcpy(&block.d[row], in + 208, 2);
}

void pack_q6(const std::byte* const rows[kPanelRows], std::size_t first_group, std::size_t columns,
             std::byte* super_block) {
  Q6Block block;
  for (std::size_t row = 0; row < kPanelRows; ++row) {
    if (rows[row] != nullptr)
      read_q6_block(rows[row] + first_group * kGroupColumns / kSuperColumns * kQ6BlockBytes, row,
                    block);
    else
      std::fill_n(block.codes[row], columns, static_cast<std::uint8_t>(Q6_K::kZero));
  }
  store_q6(block, columns, super_block);
}

// MXFP4: e8m0, then 16 bytes of which byte k holds the columns k and k + 16.
constexpr std::size_t kMxfp4BlockBytes = 17;
void pack_mxfp4(const std::byte* const rows[kPanelRows], std::size_t first_group,
                std::size_t columns, std::byte* super_block) {
  std::memset(super_block, 0, Mxfp4::super_block_bytes(columns));
  std::byte* exponents = super_block + Mxfp4::scales_offset(columns);
  for (std::size_t row = 0; row < kPanelRows; ++row) {
    if (rows[row] == nullptr) continue;
    for (std::size_t k = 0; k < columns; ++k) {
      const std::size_t group = k / kGroupColumns, inside = k % kGroupColumns;
      const std::byte* in = rows[row] + (first_group + group) * kMxfp4BlockBytes;
      exponents[group * kPanelRows + row] = in[0];
      put_bits(super_block[nibble_byte(row, k)], get_bits(in[1 + inside % 16], inside < 16 ? 0 : 4, 15),
               nibble_shift(k));
    }
  }
}

struct Packer {
  std::size_t block_columns = kGroupColumns;
  std::size_t block_bytes = 0;
  void (*pack)(const std::byte* const rows[kPanelRows], std::size_t first_group,
               std::size_t columns, std::byte* super_block) = nullptr;
};

Packer packer_of(FormatId id) {
  switch (id) {
    case FormatId::q4_0:
      return {kGroupColumns, GgufBlock<Q4_0>::kBytes, pack_nibbles<Q4_0>};
    case FormatId::q4_1:
      return {kGroupColumns, GgufBlock<Q4_1>::kBytes, pack_nibbles<Q4_1>};
    case FormatId::q5_0:
      return {kGroupColumns, GgufBlock<Q5_0>::kBytes, pack_nibbles<Q5_0>};
    case FormatId::q5_1:
      return {kGroupColumns, GgufBlock<Q5_1>::kBytes, pack_nibbles<Q5_1>};
    case FormatId::q8:
      return {kGroupColumns, kQ8BlockBytes, pack_q8};
    case FormatId::q4_k:
      return {kSuperColumns, 144, pack_k<Q4_K>};
    case FormatId::q5_k:
      return {kSuperColumns, 176, pack_k<Q5_K>};
    case FormatId::q6_k:
      return {kSuperColumns, kQ6BlockBytes, pack_q6};
    case FormatId::mxfp4:
      return {kGroupColumns, kMxfp4BlockBytes, pack_mxfp4};
    default:
      return {};
  }
}

}  // namespace

std::size_t gguf_row_bytes(const FormatTraits& format, std::size_t columns) {
  const Packer packer = packer_of(format.id);
  return columns / packer.block_columns * packer.block_bytes;
}

void pack_gguf_rows(const FormatTraits& format, const std::byte* const rows[kPanelRows],
                    std::size_t columns, std::byte* panel) {
  const Packer packer = packer_of(format.id);
  QUERN_ASSERT(packer.pack != nullptr && columns % packer.block_columns == 0);
  for (std::size_t begin = 0; begin < columns; begin += kSuperColumns) {
    const std::size_t width = std::min(kSuperColumns, columns - begin);
    packer.pack(rows, begin / kGroupColumns, width, panel);
    panel += format.super_block_bytes(width);
  }
}

}  // namespace quern::quant
