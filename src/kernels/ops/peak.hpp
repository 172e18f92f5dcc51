// The loops of kernels/peak.hpp over one instruction set: a tile of accumulators as the matrix kernels have it,
// operands from the first cache level, nothing else.
#pragma once

#include "kernels/peak.hpp"

namespace quern::kernels {

template <class P>
struct PeakOps {
  // Two lines of weights (32 rows) times kTokens inputs: 24 accumulators of AVX-512, 4 where registers are few.
  static constexpr std::size_t kLines = 2;
  static constexpr std::size_t kTokens = P::kTileLanes / kLines;
  static constexpr std::size_t kSteps = PeakArgs::kBytes / (64 * kLines);
  static constexpr std::uint64_t kLaneOperations = 2 * 16 * kLines * kTokens;  // of one step, one value a lane

  static std::uint64_t int8(const PeakArgs& args) {
    if constexpr (requires { typename P::Tiles; }) return unit_int8<typename P::Tiles>(args);
    typename P::I16 sums[kLines][kTokens];
    for (auto& line : sums)
      for (auto& sum : line) sum = P::izero();
    for (std::uint64_t round = 0; round < args.rounds; ++round)
      for (std::size_t step = 0; step < kSteps; ++step) {
        typename P::Line lines[kLines];
        for (std::size_t i = 0; i < kLines; ++i) lines[i] = P::load_line(args.weights + 64 * (kLines * step + i));
        for (std::size_t t = 0; t < kTokens; ++t) {
          const auto quad = P::quad(reinterpret_cast<const std::int8_t*>(args.inputs) + 4 * (kTokens * step + t));
          for (std::size_t i = 0; i < kLines; ++i) sums[i][t] = P::dot4_biased(sums[i][t], lines[i], quad);
        }
      }
    auto* out = reinterpret_cast<std::int32_t*>(args.out);
    for (auto& line : sums)
      for (auto& sum : line) P::istore(out, P::iadd(sum, P::iload(out)));
    return args.rounds * kSteps * kLaneOperations * 4;
  }

  static std::uint64_t f32(const PeakArgs& args) {
    return floats(args, [&](std::size_t step, typename P::V16(&lines)[kLines]) {
      for (std::size_t i = 0; i < kLines; ++i)
        lines[i] = P::load(reinterpret_cast<const float*>(args.weights + 64 * (kLines * step + i)));
    });
  }

  static std::uint64_t bf16(const PeakArgs& args) {
    return floats(args, [&](std::size_t step, typename P::V16(&lines)[kLines]) {
      P::load_bf16_pairs(reinterpret_cast<const std::uint16_t*>(args.weights + 64 * step), lines[0], lines[1]);
    });
  }

 private:
  // By the matrix unit: one block of tokens and panels again and again, its operands in the first cache level.
  template <class Tiles>
  static std::uint64_t unit_int8(const PeakArgs& args) {
    constexpr std::size_t kStride = PeakArgs::kBytes / Tiles::kTokens;  // of the codes of a token
    constexpr std::size_t kPanelLines = PeakArgs::kBytes / 64 / Tiles::kPanels;
    constexpr std::size_t kUnitLines = (kStride / 4 < kPanelLines ? kStride / 4 : kPanelLines) / 16 * 16;
    static_assert(kUnitLines > 0);
    const std::byte* lines[Tiles::kPanels];
    for (std::size_t p = 0; p < Tiles::kPanels; ++p) lines[p] = args.weights + p * kPanelLines * 64;
    alignas(64) std::int32_t sums[Tiles::kTokens * Tiles::kPanels * 16];
    const std::size_t step = Tiles::step_of(kUnitLines, kUnitLines);
    Tiles::configure(step);
    for (std::uint64_t round = 0; round < args.rounds; ++round)
      Tiles::template multiply<P::kBias != 0, Tiles::kPanels>(reinterpret_cast<const std::int8_t*>(args.weights),
                                                              kStride, lines, kUnitLines, step, sums);
    Tiles::release();
    *reinterpret_cast<std::int32_t*>(args.out) += sums[0];
    return args.rounds * 2 * Tiles::kTokens * Tiles::kPanels * 16 * 4 * kUnitLines;
  }

  template <class Load>
  [[gnu::always_inline]] static std::uint64_t floats(const PeakArgs& args, Load load) {
    typename P::V16 sums[kLines][kTokens];
    for (auto& line : sums)
      for (auto& sum : line) sum = P::zero();
    for (std::uint64_t round = 0; round < args.rounds; ++round)
      for (std::size_t step = 0; step < kSteps; ++step) {
        typename P::V16 lines[kLines];
        load(step, lines);
        for (std::size_t t = 0; t < kTokens; ++t) {
          const auto x = P::set(reinterpret_cast<const float*>(args.inputs)[kTokens * step + t]);
          for (std::size_t i = 0; i < kLines; ++i) sums[i][t] = P::fma(lines[i], x, sums[i][t]);
        }
      }
    auto* out = reinterpret_cast<float*>(args.out);
    for (auto& line : sums)
      for (auto& sum : line) P::store(out, P::add(sum, P::load(out)));
    return args.rounds * kSteps * kLaneOperations;
  }
};

}  // namespace quern::kernels
