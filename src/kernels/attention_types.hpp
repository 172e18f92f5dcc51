// KV-cache geometry and the arguments of the attention kernels.
//
// A cache block holds kBlockTokens consecutive tokens of one layer and one KV head: K, then V, then
// scales.
//  K: two half blocks of 16 tokens, tokens in lanes: [2][d_k / e][16][e], e = 4, 2, 1 values for
//  1-, 2- and
//     4-byte types (the layout of the weight panels with tokens as rows; int8 is stored signed).
//     int4: e = 8, dim j of a lane in its bits 4j..4j+3.
//  V: 16 dims in lanes: [32 / e][d_v / 16][16][e tokens], d_v padded to 16.
//     int4: [8][d_v / 32][16][4 tokens], d_v padded to 32; a byte holds dim i (low) and dim i + 16 of 32.
//  scales (int8, fp8): f32 k_scale[32], f32 v_scale[32], per token and KV head: largest magnitude /
//  127, 448
//     (e4m3) or 57344 (e5m2); 0 where that magnitude is below 1e-30 (all codes 0), NaN where it is
//     not finite.
//     int4: f16 scale[groups of 32 dims][32 tokens] for each of the two; signed codes of 4 bits, least squares
//     scale; zero and NaN as above. K is stored rotated by a Hadamard matrix over its largest power-of-two
//     part (hadamard_block()), which spreads outliers over the head; queries are rotated by its inverse
//     (store_query(); score_keys() does it itself), so scores are those of the unrotated rows.
// The bytes of a token depend on that token alone; padding is written as zeros.
//
// Latent rows (multi-head latent attention; d_rope > 0): one row of a token serves all heads, as key and as
// value, and is stored once.
//  K: [2 half blocks][d_v / e + d_rope / e lines][16][e]: the lines of the latent [d_v], then those of the
//     rotated key [d_rope], each part padded to whole lines; a key is both parts, d_k = d_v + d_rope.
//  scales: k_scale[32] of the rotated key, v_scale[32] of the latent.
//
// Attention runs in tiles of kTileTokens keys counted from the sequence's start. A tile gives (max,
// sum, o) per query; tiles are merged in index order by one fixed left fold, the same in prefill
// and decode; a tile in which a query sees no key is skipped for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

enum class CacheType : std::uint8_t { f32, bf16, f16, int8, fp8_e4m3, fp8_e5m2, int4 };

inline constexpr std::size_t kBlockTokens = 32;
inline constexpr std::size_t kTileTokens = 256;
inline constexpr std::size_t kTileBlocks = kTileTokens / kBlockTokens;
inline constexpr std::size_t kAttendQueries =
    64;  // rows attend() takes at a time; no effect on the result

constexpr std::size_t cache_value_bits(CacheType type) {
  switch (type) {
    case CacheType::f32: return 32;
    case CacheType::bf16:
    case CacheType::f16: return 16;
    case CacheType::int8:
    case CacheType::fp8_e4m3:
    case CacheType::fp8_e5m2: return 8;
    case CacheType::int4: return 4;
  }
  return 0;
}
// Of `n` values without their scales.
constexpr std::size_t cache_bytes(CacheType type, std::size_t n) {
  return (n * cache_value_bits(type) + 7) / 8;
}
// Values of one token in a lane of 4 bytes of K.
constexpr std::size_t cache_lane_values(CacheType type) { return 32 / cache_value_bits(type); }

// One f32 scale for the row of a token and KV head, applied to scores and weights.
constexpr bool cache_has_scales(CacheType type) { return cache_value_bits(type) == 8; }
// One f16 scale per kCacheGroup values of such a row, applied where values become floats.
constexpr bool cache_has_group_scales(CacheType type) { return type == CacheType::int4; }
inline constexpr std::size_t kCacheGroup = 32;
constexpr std::size_t cache_groups(std::size_t width) { return (width + kCacheGroup - 1) / kCacheGroup; }
// Of one row of `width` values.
constexpr std::size_t cache_scale_bytes(CacheType type, std::size_t width) {
  return cache_has_scales(type) ? 4 : cache_has_group_scales(type) ? 2 * cache_groups(width) : 0;
}
// Values that an int4 key is rotated by at a time: the largest power of two that divides d_k, at most 256.
constexpr std::size_t hadamard_block(std::size_t d_k) {
  std::size_t block = 1;
  while (block < 256 && d_k % (2 * block) == 0) block *= 2;
  return block;
}
inline constexpr std::size_t kMaxRotated = 1024;  // widest int4 key

// Offsets in bytes inside one block; all 64-byte aligned.
struct CacheLayout {
  CacheType k_type, v_type;
  std::size_t d_k, d_v;
  std::size_t d_rope;  // 0: K and V are rows of their own; else latent rows
  std::size_t v_offset, k_scale_offset, v_scale_offset, block_bytes;
};
// int4 keys are at most kMaxRotated wide, and never latent rows (the caller checks).
CacheLayout make_cache_layout(CacheType k_type, CacheType v_type, std::size_t d_k, std::size_t d_v);
CacheLayout make_latent_layout(CacheType type, std::size_t kv_rank, std::size_t d_rope);

// 64-byte lines that `width` values of each of 16 tokens take.
constexpr std::size_t cache_lines(CacheType type, std::size_t width) {
  return (width + cache_lane_values(type) - 1) / cache_lane_values(type);
}
// Floats of one block's K, expanded: rows of 32 tokens, the padding of a line included.
constexpr std::size_t expanded_k_floats(const CacheLayout& layout) {
  if (layout.k_type == CacheType::int4) return kBlockTokens * ((layout.d_k + 7) / 8 * 8);
  return kBlockTokens * ((layout.d_k + (layout.d_rope != 0 ? 6 : 3)) / 4 * 4);
}

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
  const float* q;         // [n_queries, q_stride], roped, unscaled, as store_query() wrote them for this layout
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
  // Of those keys query i sees the ones whose bit is set: bit k % 32 of selected[i][k / 32], k the index of
  // the key in the sequence. nullptr: all of them.
  const std::uint32_t* const* selected = nullptr;
  bool alibi_bf16 = false;  // bias = bf16(slope * bf16(key index)), rounded to nearest even
  // Blocks that this thread will probably attend next: calls of few queries have their keys fetched. No effect on
  // results.
  const std::byte* const* next_blocks = nullptr;
  std::size_t n_next_blocks = 0;
};
// Whether products with the keys or values, of `type`, are of bf16 numbers: where those of the cache fit or nearly do.
constexpr bool cache_has_bf16_products(const CacheLayout& layout, CacheType type) {
  return layout.d_rope == 0 && (type == CacheType::f16 || type == CacheType::bf16 || type == CacheType::fp8_e4m3 ||
                                type == CacheType::fp8_e5m2);
}
// Of a row that store_query() writes, with keys of any type: of codes a header of 4 words and the padding of two parts
// to words (attention_queries.hpp).
constexpr std::size_t query_floats(std::size_t d_k) {
  return d_k + 8;
}
// Enough for every pair of types of a layout of these widths.
std::size_t attend_scratch_floats(std::size_t n_queries, const CacheLayout& layout);

// Scores of one block's 32 keys alone: out[i, key] = scale * (q_i . k), no softmax. What lies in slots that
// were never written gives arbitrary scores.
struct ScoreArgs {
  const CacheLayout* layout;
  const std::byte* block;
  std::size_t n_queries;
  const float* q;        // [n_queries, q_stride], as they are, not store_query()'s
  std::size_t q_stride;
  float scale;
  float* out;            // [n_queries, out_stride], 32 values each
  std::size_t out_stride;
  float* scratch;        // score_scratch_floats(layout)
};
std::size_t score_scratch_floats(const CacheLayout& layout);  // for every type of K, too

}  // namespace quern::kernels
