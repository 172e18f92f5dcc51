// What the loops over packed weights (matmul_packed.hpp) and over expanded ones (matmul_integer.hpp) share: how a format
// is cut into groups and steps, its products, where its sums start, and what is asked for ahead of its use.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "quant/format.hpp"

namespace quern::kernels {

template <class P, class F>
struct MatmulParts {
  using V16 = typename P::V16;
  using I16 = typename P::I16;
  using Line = typename P::Line;

  static constexpr std::size_t kGroup = F::kActivationGroup;
  static constexpr std::size_t kSuper = quant::kSuperColumns;
  // Columns that a format unpacks at a time: one call of for_each_line, one index of its scales.
  static constexpr std::size_t kStep = kGroup < quant::kGroupColumns ? kGroup : quant::kGroupColumns;
  static_assert(kSuper % kGroup == 0 && kGroup % kStep == 0);
  // Zero points that differ from row to row.
  static constexpr bool kHasZeroPoints = requires { F::kHasZeroPoints; };
  // What the operand lines hold beyond the signed codes; its product with sum(a) is taken off.
  static constexpr std::int32_t kOffset = F::kUnsignedCodes ? F::kZero : P::kBias;
  // How many lines of unsigned operands sum to what 16 bits hold: a power of two, or 0 where the CPU has no use for it.
  static constexpr std::size_t word_lines() {
    if constexpr (F::kUnsignedCodes && requires { requires P::kWordSums; })
      return std::bit_floor(std::size_t{32767 / (2 * 127 * F::kLargestOperand)});
    else
      return 0;
  }
  static constexpr std::size_t kWordLines = word_lines();
  // One token: panels read side by side, and how far ahead. Four streams draw 11-13 GB/s from
  // memory where one draws 8-9 (one core of a Sapphire Rapids VM, 4 KiB pages); 1 KiB ahead is too
  // late. Other cores bring their own way (zen4.hpp).
  static constexpr std::size_t kPrefetchBytes = 2048;
  static constexpr bool kOneStream = requires { P::kStreamAhead; };

  [[gnu::always_inline]] static I16 dot(I16 acc, Line w, typename P::Quad a) {
    if constexpr (F::kUnsignedCodes)
      return P::dot4_unsigned(acc, w, a);
    else
      return P::dot4_biased(acc, w, a);
  }
  static constexpr std::size_t padded(std::size_t columns) {
    return (columns + F::kColumnStep - 1) / F::kColumnStep * F::kColumnStep;
  }

  // What the sums of a group start from: the products of the offset taken off.
  [[gnu::always_inline]] static I16 start(const std::byte* block, std::size_t columns,
                                          std::size_t begin, std::int32_t sum) {
    if constexpr (kHasZeroPoints)
      return P::scale_ints(F::template zero_points<P>(block, columns, begin / kStep), -sum);
    else
      return P::iset(-kOffset * sum);
  }

  // The hardware's own prefetch stops at every page; a step is code_lines(kStep) lines.
  [[gnu::always_inline]] static void prefetch_group(const std::byte* block, std::size_t column) {
    constexpr std::size_t kLines = F::code_lines(kStep);
    const std::byte* ahead = block + F::code_lines(column) * quant::kLineBytes + kPrefetchBytes;
    for (std::size_t i = 0; i < kLines; ++i) P::prefetch(ahead + i * quant::kLineBytes);
  }

  // Step column / kStep of a super-block asks for its share of the lines of another, scales included.
  [[gnu::always_inline]] static void prefetch_step(const std::byte* ahead, std::size_t column) {
    constexpr std::size_t kSteps = kSuper / kStep;
    constexpr std::size_t kLines = (F::super_block_bytes(kSuper) / quant::kLineBytes + kSteps) / kSteps;
    ahead += column / kStep * kLines * quant::kLineBytes;
    for (std::size_t i = 0; i < kLines; ++i) P::prefetch_stream(ahead + i * quant::kLineBytes);
  }
};

}  // namespace quern::kernels
