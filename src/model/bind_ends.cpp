// Embeddings and the head.
#include "base/error.hpp"
#include "base/strings.hpp"
#include "model/binder.hpp"

namespace quern::model {

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

Embedding Binder::embedding(const contract::Embedding& spec, const std::string& prefix,
                            const weights::TensorView* tokens) const {
  Embedding result;
  result.tokens = tokens != nullptr ? tokens : tensor(prefix + "tokens");
  result.scale = static_cast<float>(spec.scale);
  if (spec.positions) {
    result.positions = tensor(prefix + "positions");
    result.position_offset = spec.positions->offset;
    result.position_pad = spec.positions->pad;
    result.positions_last = spec.positions->after_project;
  }
  if (spec.token_types > 0) result.token_types = tensor(prefix + "token_types");
  if (spec.norm) result.norm = norm(*spec.norm, prefix + "norm", spec.d_embed);
  if (spec.project_in) result.project = linear(prefix + "project", spec.project_bias);
  return result;
}

void Binder::bind_ropes() {
  for (const auto& [name, rope] : contract_.ropes) {
    rope_index_.emplace(name, model_.ropes.size());
    model_.ropes.push_back(&rope);
  }
}

HeadTransform Binder::transform(const contract::HeadTransform& spec, const std::string& name) const {
  HeadTransform result;
  result.linear = linear(name, spec.bias);
  if (spec.activation) result.activation = activation_op(*spec.activation);
  if (spec.norm) result.norm = norm(*spec.norm, name + ".norm", spec.d_out);
  return result;
}

void Binder::bind_pooling() {
  if (!contract_.pooling) return;
  for (const contract::HeadTransform& layer : contract_.pooling->dense)
    model_.pooling.push_back(transform(layer, base::cat("pooling.", model_.pooling.size())));
}

void Binder::bind_head() {
  const contract::Head& spec = contract_.head;
  if (spec.kind == contract::HeadKind::none) return;
  Head& head = model_.head;
  head.pool = spec.pool;
  head.pool_pad = spec.pool_pad;
  head.in_scale = static_cast<float>(spec.in_scale);
  head.logit_scale = static_cast<float>(spec.logit_scale);
  head.softcap = static_cast<float>(spec.softcap.value_or(0.0));
  if (spec.transform) head.transform = transform(*spec.transform, "head.transform");
  head.logits =
      spec.tied ? linear("head", tensor("embedding.tokens"), spec.bias) : linear("head", spec.bias);
}

}  // namespace quern::model
