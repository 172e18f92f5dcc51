#include "quant/pack.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "quant/formats.hpp"
#include "quant/grouped_block.hpp"

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

struct Packer {
  std::size_t block_bytes = 0;
  void (*pack)(const std::byte* const rows[kPanelRows], std::size_t first_group,
               std::size_t columns, std::byte* super_block) = nullptr;
};

Packer packer_of(FormatId id) {
  switch (id) {
    case FormatId::q4_0:
      return {GgufBlock<Q4_0>::kBytes, pack_nibbles<Q4_0>};
    case FormatId::q4_1:
      return {GgufBlock<Q4_1>::kBytes, pack_nibbles<Q4_1>};
    case FormatId::q5_0:
      return {GgufBlock<Q5_0>::kBytes, pack_nibbles<Q5_0>};
    case FormatId::q5_1:
      return {GgufBlock<Q5_1>::kBytes, pack_nibbles<Q5_1>};
    case FormatId::q8:
      return {kQ8BlockBytes, pack_q8};
    default:
      return {};
  }
}

}  // namespace

std::size_t gguf_row_bytes(const FormatTraits& format, std::size_t columns) {
  return columns / kGroupColumns * packer_of(format.id).block_bytes;
}

void pack_gguf_rows(const FormatTraits& format, const std::byte* const rows[kPanelRows],
                    std::size_t columns, std::byte* panel) {
  const Packer packer = packer_of(format.id);
  QUERN_ASSERT(packer.pack != nullptr && columns % kGroupColumns == 0);
  for (std::size_t begin = 0; begin < columns; begin += kSuperColumns) {
    const std::size_t width = std::min(kSuperColumns, columns - begin);
    packer.pack(rows, begin / kGroupColumns, width, panel);
    panel += format.super_block_bytes(width);
  }
}

}  // namespace quern::quant
