// A stack: embedding, layers, branches.
#include "base/strings.hpp"
#include "model/binder.hpp"

namespace quern::model {

namespace {

std::optional<BranchPlace> last_store_of(const std::vector<Layer>& layers) {
  std::optional<BranchPlace> last;
  for (std::size_t i = 0; i < layers.size(); ++i)
    for (std::size_t b = 0; b < layers[i].branches.size(); ++b)
      if (layers[i].branches[b].stores_keys()) last = {i, b};
  return last;
}

}  // namespace

Stack Binder::stack(std::string_view name, const contract::Stack& spec) {
  Stack result;
  result.name = name;
  const weights::TensorView* shared = tensor("embedding.tokens");
  result.embedding = spec.embedding
                         ? embedding(spec.embedding->embedding, base::cat(name, ".embedding."),
                                     spec.embedding->own_tokens ? nullptr : shared)
                         : embedding(contract_.embedding, "embedding.", shared);
  const std::vector<contract::LayerRef> refs = contract::unroll(contract_, spec);
  StackPlace place{spec, result, {}};
  place.cache_of_layer.resize(refs.size());
  for (std::size_t i = 0; i < refs.size(); ++i) {
    Layer layer;
    layer.residual = refs[i].block->residual;
    layer.skip_scale = static_cast<float>(refs[i].block->skip_scale);
    for (std::size_t b = 0; b < refs[i].block->branches.size(); ++b)
      layer.branches.push_back(branch(place, refs[i], b, i));
    result.layers.push_back(std::move(layer));
  }
  if (name == "decoder") result.last_store = last_store_of(result.layers);
  result.final_norm = optional_norm(spec.final_norm, base::cat(name, ".final_norm"));
  return result;
}

Branch Binder::branch(StackPlace& place, const contract::LayerRef& ref, std::size_t index,
                      std::size_t layer) {
  const contract::Branch& spec = ref.block->branches[index];
  const contract::Op& op = contract_.ops.at(spec.op);
  const std::string prefix = contract::branch_prefix(place.stack.name, ref.weights_of, index);
  Branch result;
  result.kind = op.kind;
  result.shared_norm_in = spec.norm_in == contract::kSharedNorm;
  if (!result.shared_norm_in) result.norm_in = optional_norm(spec.norm_in, prefix + "norm_in");
  result.norm_out = optional_norm(spec.norm_out, prefix + "norm_out");
  result.norm_after = optional_norm(spec.norm_after, prefix + "norm_after");
  result.in_scale = static_cast<float>(spec.in_scale);
  result.out_scale = static_cast<float>(spec.out_scale);
  if (op.attention) result.attention = attention(place, *op.attention, prefix, layer);
  if (op.mla) result.mla = mla(place, *op.mla, prefix);
  if (op.nsa) result.nsa = nsa(place, *op.nsa, prefix);
  if (op.ffn) result.ffn = ffn(*op.ffn, prefix);
  if (op.moe) result.moe = moe(*op.moe, prefix);
  return result;
}

}  // namespace quern::model
