// KV-cache geometry and the arguments of the attention kernels.
//
// A cache block holds kBlockTokens consecutive tokens of one layer and one KV head: K, then V, then
// scales.
//  K: two half blocks of 16 tokens, tokens in lanes: [2][d_k / e][16][e], e = 4, 2, 1 values for
//  1-, 2- and
//     4-byte types (the layout of the weight panels with tokens as rows; int8 is stored signed).
//  V: 16 dims in lanes: [32 / e][d_v / 16][16][e tokens], d_v padded to 16.
//  scales (int8, fp8): f32 k_scale[32], f32 v_scale[32], per token and KV head: largest magnitude /
//  127, 448
//     (e4m3) or 57344 (e5m2); 0 where that magnitude is below 1e-30 (all codes 0), NaN where it is
//     not finite.
// The bytes of a token depend on that token alone; padding is written as zeros.
//
// Attention runs in tiles of kTileTokens keys counted from the sequence's start. A tile gives (max,
// sum, o) per query; tiles are merged in index order by one fixed left fold, the same in prefill
// and decode; a tile in which a query sees no key is skipped for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

enum class CacheType : std::uint8_t { f32, bf16, f16, int8, fp8_e4m3, fp8_e5m2 };

inline constexpr std::size_t kBlockTokens = 32;
inline constexpr std::size_t kTileTokens = 256;
inline constexpr std::size_t kTileBlocks = kTileTokens / kBlockTokens;
inline constexpr std::size_t kAttendQueries =
    64;  // rows attend() takes at a time; no effect on the result

constexpr std::size_t cache_value_bytes(CacheType type) {
  return type == CacheType::f32 ? 4 : (type == CacheType::bf16 || type == CacheType::f16) ? 2 : 1;
}
constexpr bool cache_has_scales(CacheType type) {
  return cache_value_bytes(type) == 1;
}

// Offsets in bytes inside one block; all 64-byte aligned.
struct CacheLayout {
  CacheType k_type, v_type;
  std::size_t d_k, d_v;
  std::size_t v_offset, k_scale_offset, v_scale_offset, block_bytes;
};
CacheLayout make_cache_layout(CacheType k_type, CacheType v_type, std::size_t d_k, std::size_t d_v);

// Running softmax state of the queries of one KV head: max -inf, sum 0, o 0 at the start.
struct AttendState {
  float* max;            // [n_queries]
  float* sum;            // [n_queries]
  float* o;              // [n_queries, o_stride]
  std::size_t o_stride;  // >= d_v padded to 16
};

struct AttendArgs {
  const CacheLayout* layout;
  const std::byte* const* blocks;  // [n_blocks] of this tile, n_blocks <= kTileBlocks
  std::size_t n_blocks;
  std::size_t first_key;  // index of the tile's first key in the sequence
  std::size_t n_queries;  // (token, head) rows that share this KV head
  const float* q;         // [n_queries, q_stride], roped, unscaled
  std::size_t q_stride;
  // Query i sees keys [begin[i], end[i]) and the first `sinks` keys below end[i].
  const std::uint32_t* begin;
  const std::uint32_t* end;
  std::uint32_t sinks;
  float scale;
  float softcap;       // 0: none
  const float* alibi;  // [n_queries] slopes, or nullptr; bias = slope * key index
  bool alibi_before_scale;
  // [n_queries], each [kTileTokens]: added to the scaled scores of the tile's keys; or nullptr.
  const float* const* bias;
  AttendState state;  // in and out
  float* scratch;     // attend_scratch_floats(n_queries, layout)
};
std::size_t attend_scratch_floats(std::size_t n_queries, const CacheLayout& layout);

}  // namespace quern::kernels
