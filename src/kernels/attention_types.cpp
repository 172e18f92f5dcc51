#include "kernels/attention_types.hpp"

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
  const std::size_t k_values_per_lane = 4 / cache_value_bytes(k_type);
  const std::size_t k_bytes =
      kBlockTokens * round_up(d_k, k_values_per_lane) * cache_value_bytes(k_type);
  const std::size_t v_bytes = kBlockTokens * round_up(d_v, 16) * cache_value_bytes(v_type);
  const std::size_t scale_bytes = round_up(kBlockTokens * sizeof(float), kLineBytes);
  CacheLayout layout{k_type, v_type, d_k, d_v, 0, 0, 0, 0, 0};
  layout.v_offset = k_bytes;
  layout.k_scale_offset = layout.v_offset + v_bytes;
  layout.v_scale_offset = layout.k_scale_offset + (cache_has_scales(k_type) ? scale_bytes : 0);
  layout.block_bytes = layout.v_scale_offset + (cache_has_scales(v_type) ? scale_bytes : 0);
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

std::size_t attend_scratch_floats(std::size_t n_queries, const CacheLayout& layout) {
  const std::size_t rows = n_queries < kAttendQueries ? n_queries : kAttendQueries;
  const std::size_t v_width = round_up(layout.d_v, 16);
  // A block of K and half a block of V as floats; scores and tile outputs.
  const std::size_t expanded = expanded_k_floats(layout) + kBlockTokens / 2 * v_width;
  return expanded + rows * (kTileTokens + v_width);
}

std::size_t score_scratch_floats(const CacheLayout& layout) {
  return expanded_k_floats(layout) + 4 * kTileTokens;  // a block of K, scores of four rows
}

}  // namespace quern::kernels
