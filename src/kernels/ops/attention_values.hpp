// A block of int8 values as the products with weights want it: lines of 16 dimensions by 4 tokens. Values of their own
// lie so; latent rows lie as keys (4 dimensions by 16 tokens) and are turned here, once for the rows of a call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/attention_shares.hpp"
#include "kernels/ops/attention_work.hpp"

namespace quern::kernels {

template <class P>
struct AttentionValues {
  static constexpr std::size_t kQuads = kBlockTokens / 4;

  const std::byte* lines;     // [kQuads, chunks, 64]
  std::size_t block, chunks;  // chunks of 16 dimensions
  const std::int32_t* start;  // [chunks * 16]: what the sums of columns start from, kOffset times the column's sum

  AttentionValues(const AttentionWork<P>& work, std::size_t b) : block(b), chunks(work.v_width / 16) {
    const CacheLayout& layout = *work.args.layout;
    auto* memory = reinterpret_cast<std::byte*>(work.v_buffer);  // 64 bytes a column
    lines = work.args.blocks[b] + layout.v_offset;
    if (layout.d_rope != 0) {
      turn(layout, work.args.blocks[b], memory);
      lines = memory;
    }
    auto* sums = reinterpret_cast<std::int32_t*>(memory + kBlockTokens * work.v_width);
    if constexpr (!AttentionShares<P>::kUnsigned) add_columns(sums);
    start = sums;
  }

 private:
  static constexpr std::size_t kLine = 64, kSixteen = 16;
  typedef std::uint8_t Bytes __attribute__((vector_size(16)));

  // Of the block's latents: each 16 bytes, 4 tokens by 4 dimensions, become 4 dimensions by 4 tokens.
  void turn(const CacheLayout& layout, const std::byte* block_bytes, std::byte* to) const {
    const std::size_t held = cache_lines(CacheType::int8, layout.d_v);
    const std::size_t of_half = (held + cache_lines(CacheType::int8, layout.d_rope)) * kLine;
    for (std::size_t half = 0; half < 2; ++half)
      for (std::size_t line = 0; line < 4 * chunks; ++line)
        for (std::size_t quad = 0; quad < 4; ++quad) {
          Bytes x = {};
          if (line < held) __builtin_memcpy(&x, block_bytes + half * of_half + line * kLine + quad * kSixteen, kSixteen);
          x = __builtin_shuffle(x, Bytes{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15});
          const std::size_t at = ((4 * half + quad) * chunks + line / 4) * kLine + line % 4 * kSixteen;
          __builtin_memcpy(to + at, &x, kSixteen);
        }
  }
  void add_columns(std::int32_t* sums) const {
    constexpr std::int8_t kOffset = AttentionShares<P>::kOffset, kOffsets[4] = {kOffset, kOffset, kOffset, kOffset};
    for (std::size_t c = 0; c < chunks; ++c) {
      typename P::I16 sum = P::izero();
      for (std::size_t quad = 0; quad < kQuads; ++quad)
        sum = P::dot4(sum, P::load_line(lines + (quad * chunks + c) * kLine), P::quad(kOffsets));
      P::istore(sums + 16 * c, sum);
    }
  }
};

}  // namespace quern::kernels
