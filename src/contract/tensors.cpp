#include "contract/tensors.hpp"

#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "contract/tensor_list.hpp"

namespace quern::contract {

namespace {

constexpr base::EnumName<TensorRole> kRoles[] = {{"embedding", TensorRole::embedding},
                                                 {"positions", TensorRole::positions},
                                                 {"norm", TensorRole::norm},
                                                 {"attention q", TensorRole::attention_q},
                                                 {"attention k", TensorRole::attention_k},
                                                 {"attention v", TensorRole::attention_v},
                                                 {"attention o", TensorRole::attention_o},
                                                 {"attention latent", TensorRole::latent},
                                                 {"ffn gate", TensorRole::ffn_gate},
                                                 {"ffn up", TensorRole::ffn_up},
                                                 {"ffn down", TensorRole::ffn_down},
                                                 {"router", TensorRole::router},
                                                 {"head", TensorRole::head},
                                                 {"bias", TensorRole::bias},
                                                 {"other", TensorRole::other}};

// own_vocab: rows of the token table, 0 when it is another embedding's.
void add_embedding(TensorList& list, const std::string& prefix, const Embedding& spec,
                   std::size_t own_vocab) {
  if (own_vocab > 0) list.matrix(prefix + "tokens", own_vocab, spec.d_embed, TensorRole::embedding);
  if (spec.positions) {
    list.table(prefix + "positions", spec.positions->rows,
               spec.positions->after_project ? list.contract.d_model : spec.d_embed,
               TensorRole::positions);
    list.specs.back().computed = spec.positions->kind == PositionTableKind::sinusoidal;
  }
  if (spec.token_types > 0)
    list.table(prefix + "token_types", spec.token_types, spec.d_embed, TensorRole::other);
  list.optional_norm(prefix + "norm.", spec.norm, spec.d_embed);
  if (spec.project_in)
    list.linear(prefix + "project", list.contract.d_model, spec.d_embed, TensorRole::other,
                spec.project_bias);
}

void add_branch(TensorList& list, const std::string& prefix, const Branch& branch) {
  const std::size_t d = list.contract.d_model;
  if (branch.norm_in != kSharedNorm) list.optional_norm(prefix + "norm_in.", branch.norm_in, d);
  add_op(list, prefix, list.contract.ops.at(branch.op));
  list.optional_norm(prefix + "norm_out.", branch.norm_out, d);
  list.optional_norm(prefix + "norm_after.", branch.norm_after, d);
}

void add_stack(TensorList& list, std::string_view name, const Stack& stack) {
  if (const RelativeBias* bias = stack_relative_bias(list.contract, stack))
    list.table(base::cat(name, ".relative_bias"), n_buckets(*bias),
               stack_bias_heads(list.contract, stack), TensorRole::other);
  const std::vector<LayerRef> layers = unroll(list.contract, stack);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (layers[layer].weights_of != layer) continue;
    const std::vector<Branch>& branches = layers[layer].block->branches;
    for (std::size_t i = 0; i < branches.size(); ++i)
      add_branch(list, branch_prefix(name, layer, i), branches[i]);
  }
  list.optional_norm(base::cat(name, ".final_norm."), stack.final_norm, list.contract.d_model);
}

void add_transform(TensorList& list, const std::string& name, const HeadTransform& spec,
                   std::size_t inputs, TensorRole role) {
  list.linear(name, spec.d_out, inputs, role, spec.bias);
  list.optional_norm(name + ".norm.", spec.norm, spec.d_out);
}

void add_pooling(TensorList& list) {
  if (!list.contract.pooling) return;
  std::size_t width = list.contract.d_model;
  const std::vector<HeadTransform>& layers = list.contract.pooling->dense;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    add_transform(list, base::cat("pooling.", i), layers[i], width, TensorRole::head);
    width = layers[i].d_out;
  }
}

void add_head(TensorList& list) {
  const Head& spec = list.contract.head;
  if (spec.kind == HeadKind::none) return;
  if (spec.transform)
    add_transform(list, "head.transform", *spec.transform, list.contract.d_model,
                  TensorRole::other);
  const std::size_t outputs = head_outputs(list.contract), inputs = head_inputs(list.contract);
  if (!spec.tied) list.matrix("head.weight", outputs, inputs, TensorRole::head);
  if (spec.bias) list.table("head.bias", 1, outputs, TensorRole::bias);
}

}  // namespace

std::string_view role_name(TensorRole role) {
  return base::enum_name(role, kRoles);
}

std::string branch_prefix(std::string_view stack, std::size_t layer, std::size_t branch) {
  return base::cat(stack, ".", layer, ".", branch, ".");
}

std::size_t n_buckets(const RelativeBias& bias) {
  return bias.starts.size() * (bias.bidirectional ? 2 : 1);
}

std::size_t head_outputs(const Contract& contract) {
  return has_labels(contract.head.kind) ? contract.head.labels.size() : contract.vocab_size;
}

std::size_t head_inputs(const Contract& contract) {
  return contract.head.transform ? contract.head.transform->d_out : contract.d_model;
}

std::size_t vector_width(const Contract& contract) {
  const bool plain = !contract.pooling || contract.pooling->dense.empty();
  return plain ? contract.d_model : contract.pooling->dense.back().d_out;
}

namespace {

const Attention* stack_bias_op(const Contract& contract, const Stack& stack) {
  for (const LayerGroup& group : stack.layers)
    for (const std::string& name : group.pattern)
      for (const Branch& branch : contract.blocks.at(name).branches)
        if (const auto& op = contract.ops.at(branch.op).attention;
            op && op->relative_bias && !op->relative_bias->per_layer)
          return &*op;
  return nullptr;
}

}  // namespace

const RelativeBias* stack_relative_bias(const Contract& contract, const Stack& stack) {
  const Attention* op = stack_bias_op(contract, stack);
  return op == nullptr ? nullptr : &*op->relative_bias;
}

std::size_t stack_bias_heads(const Contract& contract, const Stack& stack) {
  const Attention* op = stack_bias_op(contract, stack);
  return op == nullptr ? 0 : op->n_heads;
}

std::vector<TensorSpec> expected_tensors(const Contract& contract) {
  TensorList list(contract);
  add_embedding(list, "embedding.", contract.embedding, contract.vocab_size);
  if (contract.encoder) {
    if (const auto& own = contract.encoder->embedding)
      add_embedding(list, "encoder.embedding.", own->embedding,
                    own->own_tokens ? own->vocab_size : 0);
    add_stack(list, "encoder", *contract.encoder);
  }
  if (contract.decoder) add_stack(list, "decoder", *contract.decoder);
  add_head(list);
  add_pooling(list);
  return std::move(list.specs);
}

}  // namespace quern::contract
