// Latent attention and its indexer.
#include "base/error.hpp"
#include "base/strings.hpp"
#include "model/binder.hpp"
#include "quant/formats.hpp"

namespace quern::model {

using base::cat;

namespace {

// Query heads that a thread takes together over one latent row.
constexpr std::size_t kGroupHeads = 64;

std::size_t latent_groups(std::size_t n_heads) {
  std::size_t groups = 1;
  while (n_heads % groups != 0 || n_heads / groups > kGroupHeads) ++groups;
  return groups;
}

// All query heads over the one row that a token stores.
std::shared_ptr<const contract::Attention> latent_attention(const contract::Mla& spec) {
  contract::Attention result{};
  result.source = contract::AttentionSource::self;
  result.n_heads = spec.n_heads;
  result.n_kv_heads = 1;
  result.d_k = spec.kv_rank + spec.d_rope;
  result.d_v = spec.kv_rank;
  result.scale = spec.scale;
  result.mask = spec.mask;
  return std::make_shared<const contract::Attention>(result);
}

}  // namespace

// k_b and v_b are used head by head, k_b also transposed: float formats only.
Linear Binder::latent_matrix(const std::string& name) const {
  Linear result = linear(name, false);
  if (model_.kernels->transposed[quant::format_index(result.weight->format->id)] == nullptr)
    base::reject(cat(where_, ": ", name, ".weight"), "a latent projection needs a float format",
                 result.weight->format->name, "f32, bf16 or f16");
  return result;
}

Indexer Binder::indexer(StackPlace& place, const contract::Mla& spec,
                        const std::string& prefix) const {
  const contract::Indexer& index = *spec.indexer;
  Indexer result;
  result.spec = &index;
  result.q = linear(prefix + "q", false);
  result.k = linear(prefix + "k", false);
  result.weights = linear(prefix + "weights", false);
  result.k_norm = norm(index.k_norm, prefix + "k_norm", index.d_k);
  if (index.rope) result.rope = rope_index_.at(*index.rope);
  result.cache_layer = place.stack.cache_layers.size();
  place.stack.cache_layers.push_back({1, index.d_k, 0, std::nullopt, 0});
  return result;
}

Mla Binder::mla(StackPlace& place, const contract::Mla& spec, const std::string& prefix) const {
  Mla result;
  result.spec = &spec;
  if (spec.q_rank) {
    result.q_a = linear(prefix + "q_a", spec.bias_a);
    if (spec.q_norm) result.q_norm = norm(*spec.q_norm, prefix + "q_a_norm", *spec.q_rank);
    result.q_b = linear(prefix + "q_b", false);
  } else {
    result.q = linear(prefix + "q", false);
  }
  result.kv_a = linear(prefix + "kv_a", spec.bias_a);
  result.kv_norm = norm(spec.kv_norm, prefix + "kv_a_norm", spec.kv_rank);
  result.k_b = latent_matrix(prefix + "k_b");
  result.v_b = latent_matrix(prefix + "v_b");
  result.transposed =
      model_.kernels->transposed[quant::format_index(result.k_b.weight->format->id)];
  result.o = linear(prefix + "o", spec.bias_o);
  result.rope = rope_index_.at(spec.rope);
  result.latent_spec = latent_attention(spec);
  result.latent.spec = result.latent_spec.get();
  result.latent.n_groups = latent_groups(spec.n_heads);
  result.latent.d_rope = spec.d_rope;
  result.latent.cache_layer = place.stack.cache_layers.size();
  place.stack.cache_layers.push_back({1, spec.kv_rank + spec.d_rope, spec.kv_rank, spec.mask.window,
                                      spec.mask.sinks, spec.d_rope});
  if (spec.indexer) result.indexer = indexer(place, spec, prefix + "indexer.");
  return result;
}

}  // namespace quern::model
