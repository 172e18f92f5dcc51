#include "plan/cache_shapes.hpp"

#include <algorithm>

#include "base/strings.hpp"

namespace quern::plan {

using base::cat;
using model::CacheLayerSpec;

namespace {

// Attention as if each head of a layer, at most n_heads of them, kept K and V.
using HeadCount = std::size_t (*)(std::size_t n_heads);
constexpr struct {
  const char* name;
  HeadCount count;
} kOthers[] = {{"MHA", [](std::size_t n) { return n; }},
               {"GQA-8", [](std::size_t n) { return std::min<std::size_t>(n, 8); }},
               {"MQA", [](std::size_t n) { return std::min<std::size_t>(n, 1); }}};

// What the attention of a branch would keep with that many KV heads; none: it keeps nothing of its own.
std::optional<CacheLayerSpec> kept_by(const model::Branch& branch, HeadCount count) {
  if (const auto& a = branch.attention; a && a->stores_keys())
    return CacheLayerSpec{count(a->spec->n_heads), a->spec->d_k, a->spec->d_v, a->spec->mask.window, a->spec->mask.sinks};
  if (branch.mla) {
    const contract::Mla& m = *branch.mla->spec;
    return CacheLayerSpec{count(m.n_heads), m.d_nope + m.d_rope, m.d_v, m.mask.window, m.mask.sinks};
  }
  if (branch.nsa)
    return CacheLayerSpec{count(branch.nsa->spec->n_heads), branch.nsa->spec->d_k, branch.nsa->spec->d_v, std::nullopt, 0};
  return std::nullopt;
}

std::string heads_text(const CacheLayerSpec& spec) {
  if (spec.d_rope != 0) return cat("latent ", spec.d_v, " + ", spec.d_rope);
  return cat(spec.n_kv_heads, " x (", spec.d_k, " + ", spec.d_v, ")");
}

// "30 layers x 3 x (64 + 64)", each kind of layer once.
std::string layers_text(const std::vector<CacheLayerSpec>& layers) {
  std::vector<std::pair<std::string, std::size_t>> kinds;
  for (const CacheLayerSpec& spec : layers) {
    const std::string text = heads_text(spec);
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.first == text; });
    if (same == kinds.end()) kinds.emplace_back(text, 1);
    else ++same->second;
  }
  std::string out;
  for (const auto& [text, count] : kinds) out += cat(out.empty() ? "" : ", ", count, " x ", text);
  return out;
}

CacheShape named(std::string name, std::vector<CacheLayerSpec> layers) {
  std::string heads = layers_text(layers);
  return {std::move(name), std::move(heads), std::move(layers)};
}

// Payload and scales of one row of a layer.
CacheFormula row_bytes(const CacheLayerSpec& spec, const CacheTypes& types) {
  model::CacheOptions options;
  options.k_type = types.k;
  options.v_type = types.v;
  const kernels::CacheLayout layout = model::cache_layer_layout(spec, options);
  CacheFormula row;
  row.payload = kernels::cache_bytes(layout.k_type, spec.k_values()) +
                kernels::cache_bytes(layout.v_type, spec.v_values());
  row.scales = spec.n_kv_heads * (kernels::cache_scale_bytes(layout.k_type, layout.d_k) +
                                  kernels::cache_scale_bytes(layout.v_type, layout.d_v));
  return row;
}

std::uint64_t rows_held(const CacheLayerSpec& spec, std::uint64_t n_tokens) {
  const std::uint64_t rows = n_tokens < spec.row_block ? 0 : (n_tokens - spec.row_block) / spec.row_stride + 1;
  return spec.window ? std::min<std::uint64_t>(rows, *spec.window + spec.sinks) : rows;
}

}  // namespace

CacheFormula cache_formula(const CacheShape& shape, const CacheTypes& types, std::uint64_t n_tokens) {
  CacheFormula sum;
  for (const CacheLayerSpec& spec : shape.layers) {
    const CacheFormula row = row_bytes(spec, types);
    sum.payload += row.payload * rows_held(spec, n_tokens);
    sum.scales += row.scales * rows_held(spec, n_tokens);
  }
  return sum;
}

CacheFormula cache_per_token(const CacheShape& shape, const CacheTypes& types) {
  CacheFormula sum;
  for (const CacheLayerSpec& spec : shape.layers) {
    if (spec.row_stride > 1) continue;
    const CacheFormula row = row_bytes(spec, types);
    sum.payload += row.payload;
    sum.scales += row.scales;
  }
  return sum;
}

std::optional<std::uint64_t> tokens_equal(const CacheShape& shape, const CacheTypes& types, std::uint64_t bytes) {
  constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 36;
  const auto size = [&](std::uint64_t n) { return cache_formula(shape, types, n).total(); };
  if (size(kMostTokens) < bytes) return std::nullopt;
  std::uint64_t low = 0, high = kMostTokens;  // size(low) < bytes <= size(high)
  while (high - low > 1) (size((low + high) / 2) < bytes ? low : high) = (low + high) / 2;
  return bytes - size(low) < size(high) - bytes ? low : high;
}

std::vector<CacheShape> cache_shapes(const model::Model& model) {
  if (!model.decoder || model.decoder->cache_layers.empty()) return {};
  std::vector<CacheShape> shapes = {named("own", model.decoder->cache_layers)};
  for (const auto& [name, count] : kOthers) {
    std::vector<CacheLayerSpec> layers;
    for (const model::Layer& layer : model.decoder->layers)
      for (const model::Branch& branch : layer.branches)
        if (const auto spec = kept_by(branch, count)) layers.push_back(*spec);
    shapes.push_back(named(name, std::move(layers)));
  }
  return shapes;
}

std::vector<CacheShape> cache_shapes(const PlainShape& shape) {
  std::vector<CacheShape> shapes;
  const auto add = [&](const char* name, std::size_t heads) {
    shapes.push_back(named(name, std::vector<CacheLayerSpec>(
                                     shape.layers, {heads, shape.head_dim, shape.head_dim, std::nullopt, 0})));
  };
  add("own", shape.kv_heads);
  for (const auto& [name, count] : kOthers) add(name, count(shape.heads));
  return shapes;
}

}  // namespace quern::plan
