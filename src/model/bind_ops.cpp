// Attention and feed-forward layers, and which layer of the cache each attention uses.
#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "model/binder.hpp"

namespace quern::model {

using base::cat;

Attention Binder::attention(StackPlace& place, const contract::Attention& spec,
                            const std::string& prefix, std::size_t layer) {
  Attention result;
  result.spec = &spec;
  result.n_groups = spec.n_kv_heads;
  result.owns_cache = !spec.kv_from;
  result.q = linear(prefix + "q", spec.bias_q);
  result.o = linear(prefix + "o", spec.bias_o);
  if (result.owns_cache) {
    result.k = linear(prefix + "k", spec.bias_k);
    result.v = linear(prefix + "v", spec.bias_v);
  }
  if (spec.qk_norm) bind_qk_norm(result, prefix);
  if (spec.sink_logits) result.sink_logits = floats(prefix + "sink_logits");
  if (spec.relative_bias)
    result.relative_bias =
        floats(spec.relative_bias->per_layer ? prefix + "relative_bias"
                                             : cat(place.stack.name, ".relative_bias"));
  if (spec.rope) result.rope = rope_index_.at(*spec.rope);
  if (result.owns_cache)
    bind_cache(place, result, layer);
  else
    bind_reader(place, result, layer);
  return result;
}

void Binder::bind_qk_norm(Attention& attention, const std::string& prefix) const {
  const contract::Attention& spec = *attention.spec;
  const auto bound = [&](const char* part, std::size_t n_heads) {
    const bool all = spec.qk_norm->over == contract::QkNormOver::all;
    const bool each = spec.qk_norm->over == contract::QkNormOver::each_head;
    return norm(spec.qk_norm->norm, prefix + part, all ? n_heads * spec.d_k : spec.d_k,
                each ? n_heads : 1);
  };
  attention.q_norm = bound("q_norm", spec.n_heads);
  if (attention.owns_cache) attention.k_norm = bound("k_norm", spec.n_kv_heads);
}

void Binder::bind_cache(StackPlace& place, Attention& attention, std::size_t layer) const {
  const contract::Attention& spec = *attention.spec;
  const CacheLayerSpec stored{spec.n_kv_heads, spec.d_k, spec.d_v, spec.mask.window,
                              spec.mask.sinks};
  const bool cross = spec.source == contract::AttentionSource::encoder;
  std::vector<CacheLayerSpec>& layers = cross ? place.stack.cross_layers : place.stack.cache_layers;
  // An encoder reads K and V in the layer that made them: layers of one shape take turns.
  if (spec.mask.kind == contract::MaskKind::bidirectional && !cross) {
    const CacheLayerSpec shape{spec.n_kv_heads, spec.d_k, spec.d_v, std::nullopt, 0};
    const auto found = std::find(layers.begin(), layers.end(), shape);
    attention.cache_layer = static_cast<std::size_t>(found - layers.begin());
    if (found == layers.end()) layers.push_back(shape);
    return;
  }
  attention.cache_layer = layers.size();
  layers.push_back(stored);
  if (!cross) place.cache_of_layer[layer] = attention.cache_layer;
}

// kv_from: the cache layer of an earlier layer, which keeps what the widest of its readers sees.
void Binder::bind_reader(StackPlace& place, Attention& attention, std::size_t layer) const {
  const contract::Attention& spec = *attention.spec;
  const std::string where = cat(where_, ": ", place.stack.name, ".", layer);
  if (*spec.kv_from >= layer || !place.cache_of_layer[*spec.kv_from])
    base::reject(where, "kv_from must name an earlier layer with a cache of its own",
                 cat(*spec.kv_from));
  attention.cache_layer = *place.cache_of_layer[*spec.kv_from];
  CacheLayerSpec& source = place.stack.cache_layers[attention.cache_layer];
  if (source.n_kv_heads != spec.n_kv_heads || source.d_k != spec.d_k || source.d_v != spec.d_v)
    base::reject(where, "kv_from names a layer with other heads", cat(*spec.kv_from));
  if (!spec.mask.window || !source.window)
    source.window.reset();
  else
    source.window = std::max(*source.window, *spec.mask.window);
  source.sinks = std::max(source.sinks, spec.mask.sinks);
}

Ffn Binder::ffn(const contract::Ffn& spec, const std::string& prefix) const {
  Ffn result;
  result.spec = &spec;
  if (spec.gated) result.gate = linear(prefix + "gate", spec.bias_in);
  result.up = linear(prefix + "up", spec.bias_in);
  result.down = linear(prefix + "down", spec.bias_out);
  result.activation = activation_op(spec.activation);
  return result;
}

}  // namespace quern::model
