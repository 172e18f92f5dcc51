// What one tile of keys needs to know of up to kAttendQueries query rows: which keys each of them sees, and
// where its scores, weights and outputs lie in the caller's scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/attention_ahead.hpp"

namespace quern::kernels {

inline constexpr std::size_t kHalfBlock = 16;
inline constexpr std::size_t kTileHalves = kTileTokens / kHalfBlock;
inline constexpr std::uint32_t kAllKeys = 0xffff;  // of a half block
inline constexpr std::uint32_t kAllHalves = (1u << kTileHalves) - 1u;

template <class P>
struct AttentionWork {
  const AttendArgs& args;
  std::size_t first, n_rows, v_width;
  float *scores, *o, *k_buffer, *v_buffer;
  const float* q_rows;  // in the form that the keys want (attention_queries.hpp)
  std::size_t q_stride;
  std::uint16_t keys[kAttendQueries][kTileHalves];    // bit per key of a half block: the row sees it
  std::uint32_t seen[kAttendQueries];                 // bit per half block with any such key
  std::uint32_t in_part[kAttendQueries];              // bit per half block with such keys and others
  float unit[kAttendQueries];                         // what the row's stored scores are still to be multiplied by
  float peak[kAttendQueries], total[kAttendQueries];  // the tile's max, in that unit already, and sum
  float share_scale[kAttendQueries][kTileBlocks];     // of int8 weights (attention_integer.hpp)
  AttentionAhead<P> ahead;
  bool finite_values = true;                          // no slot of int8 values has a scale that is not

  AttentionWork(const AttendArgs& a, std::size_t first_row, std::size_t n)
      : args(a), first(first_row), n_rows(n), v_width((a.layout->d_v + 15) / 16 * 16), ahead(a, n) {
    k_buffer = a.scratch;
    v_buffer = k_buffer + expanded_k_floats(*a.layout);
    scores = v_buffer + kBlockTokens * v_width;
    o = scores + n * kTileTokens;
    q_rows = a.q + first * a.q_stride;
    q_stride = a.q_stride;
    if (a.layout->v_type == CacheType::int8) finite_values = scales_finite();
    for (std::size_t r = 0; r < n; ++r) {
      unit[r] = 1.0f;
      peak[r] = -__builtin_inff();
      total[r] = 0.0f;
      mark_keys(r);
    }
  }
  bool any_key() const { return bits_of(seen, n_rows) != 0; }
  bool any_row(std::size_t half) const { return (bits_of(seen, n_rows) >> half & 1u) != 0; }
  const float* q(std::size_t r) const { return q_rows + r * q_stride; }
  float* score_of(std::size_t r, std::size_t half) const {
    return scores + r * kTileTokens + half * kHalfBlock;
  }
  // Whether any of the n rows from r on sees a key of the block; whether any sees a half of it in part.
  bool any_sees(std::size_t r, std::size_t n, std::size_t block) const {
    return (bits_of(seen + r, n) >> (2 * block) & 3u) != 0;
  }
  bool any_in_part(std::size_t r, std::size_t n, std::size_t block) const {
    return (bits_of(in_part + r, n) >> (2 * block) & 3u) != 0;
  }
  // A scale per key of a half block.
  typename P::V16 scales(std::size_t offset, std::size_t half) const {
    const std::byte* line = args.blocks[half / 2] + offset;
    return P::load(reinterpret_cast<const float*>(line) + half % 2 * kHalfBlock);
  }
  // Of the rows [r, r + n), scores of the block that they must not see to -infinity, where they see others beside them.
  void hide_parts(std::size_t r, std::size_t n, std::size_t block) const {
    if (!any_in_part(r, n, block)) return;
    for (std::size_t i = r; i < r + n; ++i)
      for (std::size_t half = 2 * block; half < 2 * block + 2; ++half)
        if ((in_part[i] >> half & 1u) != 0) hide(i, half);
  }
  // Scores that the row must not see, to -infinity.
  void hide(std::size_t r, std::size_t half) const {
    float* out = score_of(r, half);
    for (std::uint32_t hidden = ~std::uint32_t{keys[r][half]} & kAllKeys; hidden != 0; hidden &= hidden - 1)
      out[__builtin_ctz(hidden)] = -__builtin_inff();
  }

 private:
  // Of n rows, the bits that any has.
  static std::uint32_t bits_of(const std::uint32_t* rows, std::size_t n) {
    std::uint32_t any = 0;
    for (std::size_t i = 0; i < n; ++i) any |= rows[i];
    return any;
  }
  bool scales_finite() const {
    typename P::V16 probe = P::zero();
    for (std::size_t half = 0; half < 2 * args.n_blocks; ++half)
      probe = P::fma(scales(args.layout->v_scale_offset, half), P::zero(), probe);
    return P::reduce_add(probe) == 0.0f;
  }
  void mark_keys(std::size_t r) {
    const std::size_t begin = args.begin[first + r], end = args.end[first + r];
    seen[r] = in_part[r] = 0;
    const bool whole = args.n_blocks == kTileBlocks && args.selected == nullptr && begin <= args.first_key &&
                       args.first_key + kTileTokens <= end;
    if (whole) {  // most tiles of a long prompt
      for (std::size_t half = 0; half < kTileHalves; ++half) keys[r][half] = kAllKeys;
      seen[r] = kAllHalves;
      return;
    }
    const std::size_t written = args.first_key + args.n_blocks * kBlockTokens, last = end < written ? end : written;
    for (std::size_t four = 0; four < kTileHalves; four += 4) {
      const std::size_t key = args.first_key + four * kHalfBlock;
      std::uint64_t mask = below(last, key) & (~below(begin, key) | below(args.sinks, key));
      if (args.selected != nullptr && mask != 0) mask &= selected(r, key);
      for (std::size_t i = 0; i < 4; ++i) {
        const auto of_half = static_cast<std::uint16_t>(mask >> (kHalfBlock * i));
        keys[r][four + i] = of_half;
        seen[r] |= std::uint32_t{of_half != 0} << (four + i);
        in_part[r] |= std::uint32_t{of_half != 0 && of_half != kAllKeys} << (four + i);
      }
    }
  }
  // Bits of the keys key..key+63 that are less than limit.
  static std::uint64_t below(std::size_t limit, std::size_t key) {
    if (limit <= key) return 0;
    return limit - key >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (limit - key)) - 1u;
  }
  // Of those keys the ones that are selected, as far as the query's words reach.
  std::uint64_t selected(std::size_t r, std::size_t key) const {
    const std::uint32_t* words = args.selected[first + r] + key / 32;
    const bool two = key + 32 < args.end[first + r];
    return words[0] | std::uint64_t{two ? words[1] : 0} << 32;
  }
};

}  // namespace quern::kernels
