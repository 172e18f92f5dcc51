// Native sparse attention: what its three branches keep, and each as ordinary attention over it.
#include "model/binder.hpp"

namespace quern::model {

namespace {

std::shared_ptr<const contract::Attention> plain_attention(const contract::Nsa& spec,
                                                           std::optional<std::size_t> window) {
  contract::Attention result{};
  result.source = contract::AttentionSource::self;
  result.n_heads = spec.n_heads;
  result.n_kv_heads = spec.n_kv_heads;
  result.d_k = spec.d_k;
  result.d_v = spec.d_v;
  result.scale = spec.scale;
  result.mask = {contract::MaskKind::causal, window, 0};
  return std::make_shared<const contract::Attention>(result);
}

Attention over(const std::shared_ptr<const contract::Attention>& spec, std::size_t cache_layer) {
  Attention result;
  result.spec = spec.get();
  result.n_groups = spec->n_kv_heads;
  result.cache_layer = cache_layer;
  return result;
}

}  // namespace

// The compress branch keeps its own K and V, exactly, as long as a block that is not complete may
// need them, and one row for each complete block.
Nsa Binder::nsa(StackPlace& place, const contract::Nsa& spec, const std::string& prefix) const {
  std::vector<CacheLayerSpec>& layers = place.stack.cache_layers;
  const auto add_layer = [&](CacheLayerSpec layer) {
    layers.push_back(layer);
    return layers.size() - 1;
  };
  Nsa result;
  result.spec = &spec;
  result.q = linear(prefix + "q", false);
  result.gates = linear(prefix + "gates", true);
  result.o = linear(prefix + "o", false);
  if (spec.rope) result.rope = rope_index_.at(*spec.rope);
  const char* names[] = {"compress", "select", "window"};
  for (std::size_t b = 0; b < 3; ++b) {
    result.branches[b].k = linear(prefix + names[b] + ".k", false);
    result.branches[b].v = linear(prefix + names[b] + ".v", false);
  }
  const CacheLayerSpec plain{spec.n_kv_heads, spec.d_k, spec.d_v, std::nullopt, 0};
  CacheLayerSpec raw = plain, rows = plain, newest = plain;
  raw.window = spec.compress_block;
  raw.exact = true;
  rows.row_block = spec.compress_block;
  rows.row_stride = spec.compress_stride;
  newest.window = spec.window;
  result.branches[0].cache_layer = add_layer(raw);
  result.branches[1].cache_layer = add_layer(plain);
  result.branches[2].cache_layer = add_layer(newest);
  result.plain_spec = plain_attention(spec, std::nullopt);
  result.local_spec = plain_attention(spec, spec.window);
  result.compressed = over(result.plain_spec, add_layer(rows));
  result.compressed.row_block = spec.compress_block;
  result.compressed.row_stride = spec.compress_stride;
  result.selected = over(result.plain_spec, result.branches[1].cache_layer);
  result.local = over(result.local_spec, result.branches[2].cache_layer);
  result.phi_k = phi(prefix + "compress.k");
  result.phi_v = phi(prefix + "compress.v");
  return result;
}

Nsa::Phi Binder::phi(const std::string& prefix) const {
  return {floats(prefix + "_position"), linear(prefix + "_in", true),
          linear(prefix + "_out", true)};
}

}  // namespace quern::model
