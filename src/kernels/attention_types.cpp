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
  CacheLayout layout{k_type, v_type, d_k, d_v, 0, 0, 0, 0};
  layout.v_offset = k_bytes;
  layout.k_scale_offset = layout.v_offset + v_bytes;
  layout.v_scale_offset = layout.k_scale_offset + (cache_has_scales(k_type) ? scale_bytes : 0);
  layout.block_bytes = layout.v_scale_offset + (cache_has_scales(v_type) ? scale_bytes : 0);
  return layout;
}

std::size_t attend_scratch_floats(std::size_t n_queries, const CacheLayout& layout) {
  const std::size_t rows = n_queries < kAttendQueries ? n_queries : kAttendQueries;
  const std::size_t v_width = round_up(layout.d_v, 16);
  // A block of K and half a block of V as floats; scores and tile outputs.
  const std::size_t expanded = kBlockTokens * round_up(layout.d_k, 4) + kBlockTokens / 2 * v_width;
  return expanded + rows * (kTileTokens + v_width);
}

}  // namespace quern::kernels
