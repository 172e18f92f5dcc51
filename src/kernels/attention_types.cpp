#include "kernels/attention_types.hpp"

#include <algorithm>

#include "base/round_up.hpp"

namespace quern::kernels {

namespace {

using base::round_up;

constexpr std::size_t kLineBytes = 64;

}  // namespace

// Bytes of 32 tokens: a value of one dimension (K) or 16 dimensions (V) fills whole 64-byte lines,
// so every part starts on a line.
CacheLayout make_cache_layout(CacheType k_type, CacheType v_type, std::size_t d_k,
                              std::size_t d_v) {
  const std::size_t k_bytes = kBlockTokens / 16 * cache_lines(k_type, d_k) * kLineBytes;
  const std::size_t v_width = round_up(d_v, v_type == CacheType::int4 ? 32 : 16);
  const std::size_t v_bytes = kBlockTokens * cache_bytes(v_type, v_width);
  const auto scale_bytes = [](CacheType type, std::size_t width) {
    return round_up(kBlockTokens * cache_scale_bytes(type, width), kLineBytes);
  };
  CacheLayout layout{k_type, v_type, d_k, d_v, 0, 0, 0, 0, 0};
  layout.v_offset = k_bytes;
  layout.k_scale_offset = layout.v_offset + v_bytes;
  layout.v_scale_offset = layout.k_scale_offset + scale_bytes(k_type, d_k);
  layout.block_bytes = layout.v_scale_offset + scale_bytes(v_type, d_v);
  return layout;
}

CacheLayout make_latent_layout(CacheType type, std::size_t kv_rank, std::size_t d_rope) {
  const std::size_t lines = cache_lines(type, kv_rank) + cache_lines(type, d_rope);
  const std::size_t scale_bytes =
      cache_has_scales(type) ? round_up(kBlockTokens * sizeof(float), kLineBytes) : 0;
  CacheLayout layout{type, type, kv_rank + d_rope, kv_rank, d_rope, 0, 0, 0, 0};
  layout.k_scale_offset = kBlockTokens / 16 * lines * kLineBytes;
  layout.v_scale_offset = layout.k_scale_offset + scale_bytes;
  layout.block_bytes = layout.v_scale_offset + scale_bytes;
  return layout;
}

namespace {

// A block of K as floats in the widest form that any type gives rows of d_k.
std::size_t widest_k_floats(const CacheLayout& layout) {
  CacheLayout int4 = layout;
  int4.k_type = CacheType::int4;
  const std::size_t own = expanded_k_floats(layout);
  return layout.d_rope != 0 ? own : std::max(own, expanded_k_floats(int4));
}

}  // namespace

std::size_t attend_scratch_floats(std::size_t n_queries, const CacheLayout& layout) {
  const std::size_t rows = n_queries < kAttendQueries ? n_queries : kAttendQueries;
  const std::size_t v_width = round_up(layout.d_v, 16);
  // A block of K and one of V as floats or as operands of pairs; scores and tile outputs.
  const std::size_t expanded = widest_k_floats(layout) + kBlockTokens * v_width;
  return expanded + rows * (kTileTokens + v_width);
}

std::size_t score_scratch_floats(const CacheLayout& layout) {
  // A block of K, scores of four rows, and those rows as int4 keys want them.
  return widest_k_floats(layout) + 4 * kTileTokens + 4 * layout.d_k;
}

}  // namespace quern::kernels
