// Memory of the latent attention of one Runner, and of its indexer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/attention_types.hpp"
#include "model/rows.hpp"

namespace quern::model {

class Model;
struct CacheExtent;

struct ScoredKey {
  float score;
  std::uint32_t key;
};

// Per thread, for one head of one run in the expanded form.
struct ExpandedScratch {
  LazyArray<float> latents, k, v;       // [kTileTokens, width]
  LazyArray<float> q;                   // [tokens], of one head, as the kernels take them
  LazyArray<std::byte> blocks;          // [kTileBlocks]: f32, d_nope + d_rope and d_v wide
  LazyArray<float> max, sum, o;         // [tokens], o [tokens, padded d_v]
  LazyArray<std::uint32_t> begin, end;  // [tokens]
  LazyArray<const std::uint32_t*> selected;
  LazyArray<float> kernel;
};

struct MlaScratch {
  MlaScratch() = default;
  MlaScratch(const Model& model, std::size_t max_chunk, std::size_t n_threads);

  RowBuffer q_a, kv;  // [tokens, q_rank], [tokens, kv_rank + d_rope]
  RowBuffer absorbed,
      latents;  // [tokens, n_heads * (kv_rank + d_rope)], [tokens, n_heads * kv_rank]
  std::vector<LazyArray<float>> product;  // per thread: head_product_floats()
  std::vector<ExpandedScratch> expanded;  // per thread

  std::size_t bytes() const;
  std::size_t expanded_bytes() const;  // of these what only the expanded form writes
};

struct IndexScratch {
  IndexScratch() = default;
  IndexScratch(const Model& model, const CacheExtent& extent, std::size_t max_chunk,
               std::size_t n_threads);

  RowBuffer q, k, weights;        // [tokens, n_heads * d_k], [tokens, d_k], [tokens, n_heads]
  LazyArray<float> scores;        // [kScoredTokens, stride]
  LazyArray<std::uint32_t> bits;  // [tokens, words]: the chosen keys
  std::size_t stride = 0, words = 0;
  std::vector<LazyArray<float>> by_head, sorted;  // per thread
  std::vector<LazyArray<ScoredKey>> tied;

  std::size_t bytes() const;
};

}  // namespace quern::model
