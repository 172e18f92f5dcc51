// Bytes that a decode step reads from memory, by part of a layer: matrices, and blocks of the KV
// cache. Not counted: norms, biases, activations, which stay in the caches, and the caches of
// sparse attention.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/report.hpp"
#include "model/forward.hpp"
#include "model/kv_cache.hpp"
#include "model/model.hpp"

namespace quern::bench {

// Of a token that sees n_keys tokens, itself among them.
inline double cache_bytes(const model::Attention& op, const model::KvCache& cache,
                          std::size_t n_keys) {
  const contract::Attention& spec = *op.spec;
  if (spec.source != contract::AttentionSource::self) return 0;
  if (spec.mask.window) n_keys = std::min(n_keys, *spec.mask.window + spec.mask.sinks);
  const std::size_t n_blocks = (n_keys + kernels::kBlockTokens - 1) / kernels::kBlockTokens;
  return static_cast<double>(n_blocks * spec.n_kv_heads * cache.layout(op.cache_layer).block_bytes);
}

inline double linear_bytes(const model::Linear& linear) {
  return linear.weight == nullptr ? 0 : static_cast<double>(linear.weight->bytes.size());
}

inline double part_bytes(const model::Branch& branch, model::Part part, const model::KvCache& cache,
                         std::size_t n_keys) {
  using model::Part;
  if (const auto& a = branch.attention) {
    const double all = static_cast<double>(engine::weight_bytes_per_token(branch)),
                 o = linear_bytes(a->o);
    return part == Part::qkv      ? all - o
           : part == Part::o      ? o
           : part == Part::attend ? cache_bytes(*a, cache, n_keys)
                                  : 0;
  }
  if (const auto& f = branch.ffn)
    return part == Part::gate_up ? linear_bytes(f->gate) + linear_bytes(f->up)
           : part == Part::down  ? linear_bytes(f->down)
                                 : 0;
  const model::Ffn* shared = branch.moe && branch.moe->shared ? &*branch.moe->shared : nullptr;
  const double gate_up =
      shared == nullptr ? 0 : linear_bytes(shared->gate) + linear_bytes(shared->up);
  const double down = shared == nullptr ? 0 : linear_bytes(shared->down);
  if (part == Part::gate_up) return gate_up;
  if (part == Part::down) return down;
  if (part != Part::other_op) return 0;
  const double keys =
      branch.mla && !branch.mla->indexer ? cache_bytes(branch.mla->latent, cache, n_keys) : 0;
  return static_cast<double>(engine::weight_bytes_per_token(branch)) - gate_up - down + keys;
}

inline double part_bytes(const model::Layer& layer, model::Part part, const model::KvCache& cache,
                         std::size_t n_keys) {
  double bytes = 0;
  for (const model::Branch& branch : layer.branches)
    bytes += part_bytes(branch, part, cache, n_keys);
  return bytes;
}

}  // namespace quern::bench
