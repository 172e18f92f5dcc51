// What decode asks memory for while it computes: the values of the block whose scores are being made, the keys of the
// next one, the keys of the next tile. In portions, since a core waits for a few dozen lines at a time and a burst of
// more stops its loads: int8 decode from memory, one Zen 3 core, 4 rows of 64: 4.0 GB/s with a burst a block.
#pragma once

#include <cstddef>

#include "kernels/ops/attention_work.hpp"

namespace quern::kernels {

template <class P>
class AttentionAhead {
 public:
  // Few rows: each block is read once, so what it takes from memory is not spread over much work.
  static constexpr std::size_t kFewRows = 16;
  static bool serves(const AttendArgs& args) { return args.n_queries <= kFewRows; }

  static std::size_t portions(std::size_t n_rows, std::size_t at_once) { return (n_rows + at_once - 1) / at_once; }

  // Nothing to ask for.
  AttentionAhead() = default;

  // While the scores of block b are made in n_portions.
  static AttentionAhead in_scores(const AttendArgs& args, std::size_t b, std::size_t n_portions) {
    const CacheLayout& layout = *args.layout;
    const bool next = b + 1 < args.n_blocks;
    return {{values_of(layout, args.blocks[b]), next ? keys_of(layout, args.blocks[b + 1]) : Range{}}, n_portions};
  }
  // While the values of block b are weighed in n_portions.
  static AttentionAhead in_values(const AttendArgs& args, std::size_t b, std::size_t n_portions) {
    const bool next = b < args.n_next_blocks;
    return {{next ? keys_of(*args.layout, args.next_blocks[b]) : Range{}, Range{}}, n_portions};
  }

  // One portion.
  void ask() {
    for (std::size_t i = 0; i < lines_; ++i) {
      if (first_.at >= first_.end) {
        if (second_.at >= second_.end) return;
        first_ = second_;
        second_ = Range{};
      }
      __builtin_prefetch(first_.at, 0, 1);  // into L2: a tile of keys and one of values are more than L1
      first_.at += kLine;
    }
  }

 private:
  static constexpr std::size_t kLine = 64;
  struct Range {
    const std::byte *at = nullptr, *end = nullptr;
    std::size_t bytes() const { return static_cast<std::size_t>(end - at); }
  };
  struct Ranges {
    Range first, second;
  };
  AttentionAhead(const Ranges& ranges, std::size_t n_portions)
      : first_(ranges.first),
        second_(ranges.second),
        lines_((ranges.first.bytes() + ranges.second.bytes()) / kLine / n_portions + 1) {}

  // Latent rows are keys and values at once, with the keys.
  static Range keys_of(const CacheLayout& layout, const std::byte* block) {
    return {block, block + (layout.d_rope != 0 ? layout.block_bytes : layout.v_offset)};
  }
  static Range values_of(const CacheLayout& layout, const std::byte* block) {  // and all scales
    return layout.d_rope != 0 ? Range{} : Range{block + layout.v_offset, block + layout.block_bytes};
  }
  Range first_, second_;
  std::size_t lines_ = 0;
};

}  // namespace quern::kernels
