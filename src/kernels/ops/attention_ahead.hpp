// What decode asks memory for while it computes: the tile that comes next, keys, values and scales, spread over the
// steps of this one, the softmax too. A core waits for a few dozen lines at a time: a burst of more stops its loads, and
// steps that ask for nothing leave memory idle. int8 decode from memory, a Zen 5 core, rows of 64, GB/s, against what a
// block's scores ask for at once: 3 heads a KV head 20 -> 28, 4 heads 19 -> 30, 8 heads 17 -> 22; bf16 19 -> 31, 14 -> 22.
#pragma once

#include <cstddef>

#include "kernels/attention_types.hpp"

namespace quern::kernels {

template <class P>
class AttentionAhead {
 public:
  // Units of work of each step: they decide how much a step asks for.
  static constexpr std::size_t kScores = 4, kValues = 3;  // of a block
  static constexpr std::size_t kSoftmax = 2;              // of a row

  // Few rows: each block is read once, so what it takes from memory is not spread over much work.
  AttentionAhead(const AttendArgs& args, std::size_t n_rows) {
    if (args.n_queries > kFewRows) return;
    blocks_ = args.next_blocks;
    n_blocks_ = args.n_next_blocks;
    lines_ = args.layout->block_bytes / kLine;
    const std::size_t units = args.n_blocks * (kScores + kValues) + n_rows * kSoftmax;
    of_unit_ = (n_blocks_ * lines_ + units - 1) / units;
  }

  void ask(std::size_t units) {
    for (std::size_t n = units * of_unit_; n > 0 && block_ < n_blocks_; --n) {
      prefetch(blocks_[block_] + line_ * kLine);
      if (++line_ < lines_) continue;
      line_ = 0;
      ++block_;
    }
  }

 private:
  // As streams of weights are asked for: into L1 where its misses do not hold the core back (zen5.hpp), though a tile is
  // most of it; else into L2.
  static void prefetch(const std::byte* p) {
    if constexpr (requires { P::prefetch_stream(p); })
      P::prefetch_stream(p);
    else
      __builtin_prefetch(p, 0, 2);
  }
  static constexpr std::size_t kFewRows = 16, kLine = 64;
  const std::byte* const* blocks_ = nullptr;
  std::size_t n_blocks_ = 0, lines_ = 0, of_unit_ = 0;
  std::size_t block_ = 0, line_ = 0;  // to be asked for next
};

}  // namespace quern::kernels
