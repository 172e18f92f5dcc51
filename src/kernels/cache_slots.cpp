#include "kernels/cache_slots.hpp"

#include <cstring>

#include "base/round_up.hpp"

namespace quern::kernels {

namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kHalfTokens = 16;                          // tokens of a line of K
constexpr std::size_t kLaneBytes = kLineBytes / kHalfTokens;     // of one token, or one dim of V

void clear_k_slots(std::byte* k, std::size_t half_bytes, std::size_t first) {
  for (std::size_t half = 0; half < kBlockTokens / kHalfTokens; ++half) {
    const std::size_t begin = half * kHalfTokens;
    const std::size_t kept = first > begin ? first - begin : 0;
    if (kept >= kHalfTokens) continue;
    std::byte* line = k + half * half_bytes;
    for (std::byte* end = line + half_bytes; line < end; line += kLineBytes)
      std::memset(line + kept * kLaneBytes, 0, (kHalfTokens - kept) * kLaneBytes);
  }
}

// A lane of V holds one dim of `per_lane` neighbouring tokens.
void clear_v_slots(std::byte* v, const CacheLayout& layout, std::size_t first) {
  const bool int4 = layout.v_type == CacheType::int4;  // a byte holds two dims of its token
  const std::size_t value_bytes = int4 ? 1 : cache_value_bits(layout.v_type) / 8, per_lane = kLaneBytes / value_bytes;
  const std::size_t row_bytes = (int4 ? cache_groups(layout.d_v) * 16 : base::round_up(layout.d_v, 16)) * kLaneBytes;
  for (std::size_t row = 0; row < kBlockTokens / per_lane; ++row) {
    const std::size_t begin = row * per_lane, kept = first > begin ? first - begin : 0;
    if (kept >= per_lane) continue;
    std::byte* lane = v + row * row_bytes;
    for (std::byte* end = lane + row_bytes; lane < end; lane += kLaneBytes)
      std::memset(lane + kept * value_bytes, 0, (per_lane - kept) * value_bytes);
  }
}

// Scales of a type: lists of 32 tokens.
void clear_scales(std::byte* scales, std::size_t bytes, CacheType type, std::size_t first) {
  const std::size_t each = cache_has_group_scales(type) ? 2 : sizeof(float);
  for (std::byte* end = scales + bytes; scales < end; scales += kBlockTokens * each)
    std::memset(scales + first * each, 0, (kBlockTokens - first) * each);
}

}  // namespace

void clear_cache_slots(const CacheLayout& layout, std::byte* block, std::size_t first) {
  const std::size_t k_end = layout.d_rope != 0 ? layout.k_scale_offset : layout.v_offset;
  clear_k_slots(block, k_end / (kBlockTokens / kHalfTokens), first);
  if (layout.d_rope == 0 && layout.d_v != 0) clear_v_slots(block + layout.v_offset, layout, first);
  clear_scales(block + layout.k_scale_offset, layout.v_scale_offset - layout.k_scale_offset, layout.k_type, first);
  clear_scales(block + layout.v_scale_offset, layout.block_bytes - layout.v_scale_offset, layout.v_type, first);
}

}  // namespace quern::kernels
