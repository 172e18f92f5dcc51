// Bytes of the cache by formula: the model's own heads, and what multi-head, grouped and multi-query attention
// of the same width would cost.
//   bytes = b x sum over sequences of S_r x sum over layers of H_kv,l (d_k,l + d_v,l)     (+ scales)
// Not here: rounding to blocks and tables (model/memory_need.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/kv_cache.hpp"

namespace quern::plan {

struct CacheTypes {
  kernels::CacheType k = kernels::CacheType::int8, v = kernels::CacheType::int8;
};

struct CacheShape {
  std::string name;     // "own", "MHA", "GQA-8", "MQA"
  std::string heads;    // of a layer: "3 KV heads x (64 + 64)"
  std::vector<model::CacheLayerSpec> layers;
};

// Of one sequence of n_tokens, with payload and scales apart.
struct CacheFormula {
  std::uint64_t payload = 0, scales = 0;
  std::uint64_t total() const { return payload + scales; }
};
CacheFormula cache_formula(const CacheShape& shape, const CacheTypes& types, std::uint64_t n_tokens);
// What a token adds while no window is full and rows are one per token.
CacheFormula cache_per_token(const CacheShape& shape, const CacheTypes& types);

// Context at which a sequence's cache comes nearest to `bytes`; none: it never grows so far.
std::optional<std::uint64_t> tokens_equal(const CacheShape& shape, const CacheTypes& types, std::uint64_t bytes);

// The model's own first, then MHA, GQA-8 (where there are more than 8 heads) and MQA. Empty without a decoder.
std::vector<CacheShape> cache_shapes(const model::Model& model);

// A model of equal layers that is known by its shape alone.
struct PlainShape {
  std::size_t layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
};
std::vector<CacheShape> cache_shapes(const PlainShape& shape);

}  // namespace quern::plan
