#include "model/bind.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "contract/tensors.hpp"
#include "quant/formats.hpp"

namespace quern::model {

namespace {

using base::cat;

kernels::ActivationOp activation_op(contract::Activation activation) {
  switch (activation) {
    case contract::Activation::relu:
      return kernels::ActivationOp::relu;
    case contract::Activation::silu:
      return kernels::ActivationOp::silu;
    case contract::Activation::gelu_erf:
      return kernels::ActivationOp::gelu_erf;
    case contract::Activation::gelu_tanh:
      return kernels::ActivationOp::gelu_tanh;
    case contract::Activation::gelu_quick:
      return kernels::ActivationOp::gelu_quick;
    case contract::Activation::tanh:
      return kernels::ActivationOp::tanh;
  }
  QUERN_ASSERT(!"activation without a kernel");
  return kernels::ActivationOp::relu;
}

class Binder {
 public:
  Binder(Model& model, std::string_view where)
      : model_(model), contract_(model.contract), where_(where) {}

  void index_tensors(std::span<const weights::TensorView> tensors);
  void bind_ends();
  void bind_layers();

 private:
  void check_tensor(const contract::TensorSpec& spec) const;
  const weights::TensorView* tensor(const std::string& name) const { return by_name_.at(name); }
  const float* floats(const std::string& name) const { return tensor(name)->floats(); }
  Linear linear(const std::string& name, bool bias) const;
  Linear linear(const std::string& name, const weights::TensorView* weight, bool bias) const;
  Norm norm(const std::string& kind, const std::string& prefix, std::size_t width) const;
  std::optional<Norm> optional_norm(const std::optional<std::string>& kind,
                                    const std::string& prefix) const;
  Branch branch(const contract::Block& block, std::size_t index, std::size_t layer,
                std::size_t weights_of);
  Attention attention(const contract::Attention& spec, const std::string& prefix,
                      std::size_t layer);
  void bind_cache(Attention& attention, std::size_t layer);
  Ffn ffn(const contract::Ffn& spec, const std::string& prefix) const;

  Model& model_;
  const contract::Contract& contract_;
  std::string where_;
  std::unordered_map<std::string_view, const weights::TensorView*> by_name_;
  std::unordered_map<std::string_view, std::size_t> rope_index_;
  std::vector<std::optional<std::size_t>> cache_of_layer_;  // cache layer each model layer fills
};

// The tensors of the file and those of the contract are the same set, with the same shapes.
void Binder::index_tensors(std::span<const weights::TensorView> tensors) {
  for (const weights::TensorView& view : tensors) by_name_.emplace(view.name, &view);
  const std::vector<contract::TensorSpec> expected = contract::expected_tensors(contract_);
  for (const contract::TensorSpec& spec : expected) check_tensor(spec);
  if (by_name_.size() == expected.size()) return;
  std::vector<std::string_view> names;
  for (const contract::TensorSpec& spec : expected) names.push_back(spec.name);
  std::sort(names.begin(), names.end());
  for (const weights::TensorView& view : tensors)
    if (!std::binary_search(names.begin(), names.end(), std::string_view(view.name)))
      base::reject(cat(where_, ": ", view.name), "tensor that the contract does not have");
}

void Binder::check_tensor(const contract::TensorSpec& spec) const {
  const std::string where = cat(where_, ": ", spec.name);
  const auto found = by_name_.find(spec.name);
  if (found == by_name_.end()) base::reject(where, "tensor is missing");
  const weights::TensorView& view = *found->second;
  if (view.rows != spec.rows || view.columns != spec.columns)
    base::reject(where, "wrong shape", cat("[", view.rows, ", ", view.columns, "]"),
                 cat("[", spec.rows, ", ", spec.columns, "]"));
  const bool table = view.format->id == quant::FormatId::rows_f32;
  if (spec.matrix == table)
    base::reject(where, "wrong format", view.format->name,
                 spec.matrix ? "a matrix format" : "rows_f32");
}

Linear Binder::linear(const std::string& name, bool bias) const {
  return linear(name, tensor(name + ".weight"), bias);
}

// A matrix that goes by another name (the tied head), with the bias of `name`.
Linear Binder::linear(const std::string& name, const weights::TensorView* weight, bool bias) const {
  Linear result;
  result.weight = weight;
  result.bias = bias ? floats(name + ".bias") : nullptr;
  result.matmul = model_.kernels->matmul[quant::format_index(weight->format->id)];
  if (result.matmul == nullptr)
    base::reject(cat(where_, ": ", name), "no kernel for this format", weight->format->name);
  result.out = weight->rows;
  result.in = weight->columns;
  result.panel_bytes = quant::panel_bytes(*weight->format, weight->columns);
  result.n_panels = quant::n_panels(weight->rows);
  return result;
}

Norm Binder::norm(const std::string& kind, const std::string& prefix, std::size_t width) const {
  const contract::Norm& spec = contract_.norms.at(kind);
  Norm result;
  result.args.op = spec.kind == contract::NormKind::rms_norm ? kernels::NormOp::rms_norm
                                                             : kernels::NormOp::layer_norm;
  result.args.n = width;
  result.args.eps = static_cast<float>(spec.eps);
  result.args.weight = spec.weight ? floats(prefix + ".weight") : nullptr;
  result.args.bias = spec.bias ? floats(prefix + ".bias") : nullptr;
  result.args.accumulate_f64 = spec.accumulate == contract::Accumulate::f64;
  if (spec.weight && spec.weight_offset != 0) {
    result.weight.assign(result.args.weight, result.args.weight + width);
    for (float& w : result.weight) w += static_cast<float>(spec.weight_offset);
    result.args.weight = result.weight.data();
  }
  return result;
}

std::optional<Norm> Binder::optional_norm(const std::optional<std::string>& kind,
                                          const std::string& prefix) const {
  if (!kind) return std::nullopt;
  return norm(*kind, prefix, contract_.d_model);
}

void Binder::bind_ends() {
  const contract::Embedding& spec = contract_.embedding;
  Embedding& embedding = model_.embedding;
  embedding.tokens = tensor("embedding.tokens");
  embedding.scale = static_cast<float>(spec.scale);
  if (spec.positions) {
    embedding.positions = tensor("embedding.positions");
    embedding.position_offset = spec.positions->offset;
  }
  embedding.norm = optional_norm(spec.norm, "embedding.norm");
  model_.final_norm = optional_norm(contract_.decoder->final_norm, "decoder.final_norm");

  const contract::Head& head = contract_.head;
  if (head.kind == contract::HeadKind::none) return;
  model_.head.in_scale = static_cast<float>(head.in_scale);
  model_.head.logit_scale = static_cast<float>(head.logit_scale);
  model_.head.softcap = static_cast<float>(head.softcap.value_or(0.0));
  model_.head.logits =
      head.tied ? linear("head", embedding.tokens, head.bias) : linear("head", head.bias);
}

void Binder::bind_layers() {
  for (const auto& [name, rope] : contract_.ropes) {
    rope_index_.emplace(name, model_.ropes.size());
    model_.ropes.push_back(&rope);
  }
  const std::vector<contract::LayerRef> refs = contract::unroll(contract_, *contract_.decoder);
  cache_of_layer_.resize(refs.size());
  for (std::size_t i = 0; i < refs.size(); ++i) {
    Layer layer;
    layer.residual = refs[i].block->residual;
    layer.skip_scale = static_cast<float>(refs[i].block->skip_scale);
    for (std::size_t b = 0; b < refs[i].block->branches.size(); ++b)
      layer.branches.push_back(branch(*refs[i].block, b, i, refs[i].weights_of));
    model_.layers.push_back(std::move(layer));
  }
}

Branch Binder::branch(const contract::Block& block, std::size_t index, std::size_t layer,
                      std::size_t weights_of) {
  const contract::Branch& spec = block.branches[index];
  const contract::Op& op = contract_.ops.at(spec.op);
  const std::string prefix = contract::branch_prefix("decoder", weights_of, index);
  Branch result;
  result.kind = op.kind;
  result.shared_norm_in = spec.norm_in == contract::kSharedNorm;
  if (!result.shared_norm_in) result.norm_in = optional_norm(spec.norm_in, prefix + "norm_in");
  result.norm_out = optional_norm(spec.norm_out, prefix + "norm_out");
  result.norm_after = optional_norm(spec.norm_after, prefix + "norm_after");
  result.in_scale = static_cast<float>(spec.in_scale);
  result.out_scale = static_cast<float>(spec.out_scale);
  if (op.kind == contract::OpKind::attention)
    result.attention = attention(*op.attention, prefix, layer);
  if (op.kind == contract::OpKind::ffn) result.ffn = ffn(*op.ffn, prefix);
  return result;
}

Attention Binder::attention(const contract::Attention& spec, const std::string& prefix,
                            std::size_t layer) {
  Attention result;
  result.spec = &spec;
  result.owns_cache = !spec.kv_from;
  result.q = linear(prefix + "q", spec.bias_q);
  result.o = linear(prefix + "o", spec.bias_o);
  if (result.owns_cache) {
    result.k = linear(prefix + "k", spec.bias_k);
    result.v = linear(prefix + "v", spec.bias_v);
  }
  if (spec.qk_norm) {
    const bool all = spec.qk_norm->over == contract::QkNormOver::all;
    result.q_norm =
        norm(spec.qk_norm->norm, prefix + "q_norm", all ? spec.n_heads * spec.d_k : spec.d_k);
    if (result.owns_cache)
      result.k_norm =
          norm(spec.qk_norm->norm, prefix + "k_norm", all ? spec.n_kv_heads * spec.d_k : spec.d_k);
  }
  if (spec.sink_logits) result.sink_logits = floats(prefix + "sink_logits");
  if (spec.rope) result.rope = rope_index_.at(*spec.rope);
  bind_cache(result, layer);
  return result;
}

void Binder::bind_cache(Attention& attention, std::size_t layer) {
  const contract::Attention& spec = *attention.spec;
  if (attention.owns_cache) {
    attention.cache_layer = model_.cache_layers.size();
    cache_of_layer_[layer] = attention.cache_layer;
    model_.cache_layers.push_back(
        {spec.n_kv_heads, spec.d_k, spec.d_v, spec.mask.window, spec.mask.sinks});
    return;
  }
  const std::string where = cat(where_, ": decoder.", layer);
  if (*spec.kv_from >= layer || !cache_of_layer_[*spec.kv_from])
    base::reject(where, "kv_from must name an earlier layer with a cache of its own",
                 cat(*spec.kv_from));
  attention.cache_layer = *cache_of_layer_[*spec.kv_from];
  Model::CacheLayerSpec& source = model_.cache_layers[attention.cache_layer];
  if (source.n_kv_heads != spec.n_kv_heads || source.d_k != spec.d_k || source.d_v != spec.d_v)
    base::reject(where, "kv_from names a layer with other heads", cat(*spec.kv_from));
  // The cache keeps what the widest of its readers sees.
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

// What the vocabulary can say and this version cannot run.
void refuse_unsupported(const contract::Contract& contract) {
  const auto refuse = [](std::string_view where, std::string_view what) {
    base::reject(where, cat(what, " is not run by this version"));
  };
  if (contract.kind != contract::ModelKind::decoder || contract.encoder || !contract.decoder)
    refuse("model.json: kind", "a model with an encoder");
  if (contract.embedding.token_types != 0)
    refuse("model.json: embedding.token_types", "a token type table");
  if (contract.embedding.project_in || contract.embedding.d_embed != contract.d_model)
    refuse("model.json: embedding.project_in", "a projection of the embedding");
  for (const auto& [name, op] : contract.ops) {
    const std::string place = cat("model.json: ops.", name);
    if (op.mla) refuse(place, "latent attention");
    if (op.nsa) refuse(place, "native sparse attention");
    if (op.moe) refuse(place, "a mixture of experts");
    if (op.ffn && (op.ffn->clamp || op.ffn->up_offset != 0)) refuse(place, "a clamped gate");
    if (op.attention && (op.attention->relative_bias || op.attention->clip_qkv ||
                         op.attention->source != contract::AttentionSource::self))
      refuse(place, "relative_bias, clip_qkv or attention over an encoder");
    if (op.attention && op.attention->qk_norm &&
        op.attention->qk_norm->over == contract::QkNormOver::each_head)
      refuse(place, "qk_norm over each_head");
  }
  if (contract.head.transform || contract.head.kind == contract::HeadKind::classify)
    refuse("model.json: head", "a transform or classifier");
  for (const auto& [name, op] : contract.ops)
    if (op.attention && op.attention->mask.kind != contract::MaskKind::causal)
      refuse(cat("model.json: ops.", name, ".mask"), "bidirectional attention in a decoder");
  for (const auto& [name, block] : contract.blocks) {
    for (std::size_t b = 0; b < block.branches.size(); ++b) {
      const contract::Branch& branch = block.branches[b];
      const std::string where = cat("model.json: blocks.", name, ".branches[", b, "]");
      if (block.residual == contract::Residual::parallel && branch.norm_after)
        refuse(where, "norm_after in a parallel block");
      if (branch.norm_in != contract::kSharedNorm) continue;
      if (b == 0 || block.residual != contract::Residual::parallel)
        base::reject(where, "a shared norm needs an earlier branch of a parallel block");
      if (branch.in_scale != 1) refuse(where, "in_scale beside a shared norm");
    }
  }
}

}  // namespace

void bind(Model& model, std::span<const weights::TensorView> tensors, std::string_view where) {
  refuse_unsupported(model.contract);
  Binder binder(model, where);
  binder.index_tensors(tensors);
  binder.bind_ends();
  binder.bind_layers();
}

}  // namespace quern::model
