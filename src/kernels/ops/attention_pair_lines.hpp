// Blocks of the cache as operands of bf16 products (pair_products.hpp): in its own memory where it holds bf16 numbers,
// else converted, once for all rows of a call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/attention_work.hpp"
#include "kernels/ops/pair_products.hpp"

namespace quern::kernels {

template <class P>
struct AttentionPairLines {
  using Work = AttentionWork<P>;
  using Pairs = PairProducts<P>;
  using Form = typename Pairs::Form;

  static constexpr std::size_t kPair = 4, kLine = 64;  // bytes
  static constexpr std::size_t kBlockPairs = kBlockTokens / 2;

  struct Keys {
    const std::byte* operands;  // [2 half blocks][half_operands] of 16 tokens, pairs of dimensions
    std::size_t half_operands, n_pairs;
    Form form;
    const float* scales;  // [kBlockTokens] or nullptr

    Keys(const Work& work, std::size_t b)
        : operands(work.args.blocks[b]), n_pairs((work.args.layout->d_k + 1) / 2), form(form_of(work.args.layout->k_type)),
          scales(nullptr) {
      const CacheLayout& layout = *work.args.layout;
      const std::size_t lines = cache_lines(layout.k_type, layout.d_k);
      half_operands = lines * cache_lane_values(layout.k_type) / 2;
      if (cache_has_scales(layout.k_type)) scales = reinterpret_cast<const float*>(operands + layout.k_scale_offset);
      if (layout.k_type != CacheType::bf16) operands = convert(layout.k_type, operands, {2 * lines, 1}, work.k_buffer);
    }
  };

  struct Values {
    const std::byte* operands;  // [kBlockPairs, chunks] of 16 dimensions, pairs of tokens
    std::size_t chunks;
    Form form;

    Values(const Work& work, std::size_t b)
        : operands(work.args.blocks[b] + work.args.layout->v_offset), chunks(work.v_width / 16),
          form(form_of(work.args.layout->v_type)) {
      const CacheType type = work.args.layout->v_type;
      if (type != CacheType::bf16)
        operands = convert(type, operands, {kBlockTokens / cache_lane_values(type), chunks}, work.v_buffer);
    }
  };

 private:
  static Form form_of(CacheType type) { return type == CacheType::bf16 ? Form::pairs : Form::converted; }

  struct Grid {
    std::size_t groups, chunks;
  };
  // Lines [groups, chunks] of 2 or 4 values a lane -> operands [groups * that / 2, chunks].
  static const std::byte* convert(CacheType type, const std::byte* lines, const Grid& grid, float* buffer) {
    auto* to = reinterpret_cast<std::byte*>(buffer);
    if (type == CacheType::f16)
      convert<CacheType::f16>(lines, grid, to);
    else if (type == CacheType::fp8_e4m3)
      convert<CacheType::fp8_e4m3>(lines, grid, to);
    else
      convert<CacheType::fp8_e5m2>(lines, grid, to);
    return to;
  }
  template <CacheType kType>
  static void convert(const std::byte* lines, const Grid& grid, std::byte* to) {
    const std::size_t next = grid.chunks * kBytes;
    for (std::size_t g = 0; g < grid.groups; ++g, to += cache_lane_values(kType) / 2 * next)
      for (std::size_t c = 0; c < grid.chunks; ++c, lines += kLine)
        Pairs::template convert<kType>(lines, to + c * kBytes, next);
  }
  static constexpr std::size_t kBytes = Pairs::bytes_of(Form::converted);
};

}  // namespace quern::kernels
