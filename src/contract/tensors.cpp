#include "contract/tensors.hpp"

#include "base/strings.hpp"

namespace quern::contract {

namespace {

// Collects the list; every method adds the tensors of one part under a prefix that ends with a dot.
class TensorList {
 public:
  explicit TensorList(const Contract& contract) : contract_(contract) {}
  std::vector<TensorSpec> take() { return std::move(specs_); }

  void embedding() {
    const Embedding& spec = contract_.embedding;
    matrix("embedding.tokens", contract_.vocab_size, spec.d_embed, TensorRole::embedding);
    if (spec.positions)
      table("embedding.positions", spec.positions->rows, spec.d_embed, TensorRole::positions);
    if (spec.token_types > 0)
      table("embedding.token_types", spec.token_types, spec.d_embed, TensorRole::other);
    if (spec.norm) norm("embedding.norm.", *spec.norm, spec.d_embed);
    if (spec.project_in)
      matrix("embedding.project.weight", contract_.d_model, spec.d_embed, TensorRole::other);
  }

  void stack(std::string_view name, const Stack& stack) {
    const std::vector<LayerRef> layers = unroll(contract_, stack);
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      if (layers[layer].weights_of != layer) continue;
      const std::vector<Branch>& branches = layers[layer].block->branches;
      for (std::size_t i = 0; i < branches.size(); ++i)
        branch(branch_prefix(name, layer, i), branches[i]);
    }
    if (stack.final_norm)
      norm(base::cat(name, ".final_norm."), *stack.final_norm, contract_.d_model);
  }

  void head() {
    const Head& spec = contract_.head;
    if (spec.kind != HeadKind::lm) return;
    if (!spec.tied)
      matrix("head.weight", contract_.vocab_size, contract_.d_model, TensorRole::head);
    if (spec.bias) table("head.bias", 1, contract_.vocab_size, TensorRole::bias);
  }

 private:
  void matrix(std::string name, std::size_t rows, std::size_t columns, TensorRole role) {
    specs_.push_back({std::move(name), rows, columns, role, true});
  }
  void table(std::string name, std::size_t rows, std::size_t columns, TensorRole role) {
    specs_.push_back({std::move(name), rows, columns, role, false});
  }
  void linear(const std::string& name, std::size_t rows, std::size_t columns, TensorRole role,
              bool bias) {
    matrix(name + ".weight", rows, columns, role);
    if (bias) table(name + ".bias", 1, rows, TensorRole::bias);
  }
  // prefix ends with "." or "_norm."
  void norm(const std::string& prefix, const std::string& name, std::size_t width) {
    const Norm& spec = contract_.norms.at(name);
    if (spec.weight) table(prefix + "weight", 1, width, TensorRole::norm);
    if (spec.bias) table(prefix + "bias", 1, width, TensorRole::norm);
  }
  void branch(const std::string& prefix, const Branch& branch) {
    if (branch.norm_in && *branch.norm_in != kSharedNorm)
      norm(prefix + "norm_in.", *branch.norm_in, contract_.d_model);
    const Op& op = contract_.ops.at(branch.op);
    if (op.attention) attention(prefix, *op.attention);
    if (op.ffn) ffn(prefix, *op.ffn);
    if (branch.norm_out) norm(prefix + "norm_out.", *branch.norm_out, contract_.d_model);
    if (branch.norm_after) norm(prefix + "norm_after.", *branch.norm_after, contract_.d_model);
  }
  void attention(const std::string& prefix, const Attention& op) {
    const std::size_t d = contract_.d_model;
    const bool own_kv = !op.kv_from.has_value();
    linear(prefix + "q", op.n_heads * op.d_k, d, TensorRole::attention_q, op.bias_q);
    if (own_kv) {
      linear(prefix + "k", op.n_kv_heads * op.d_k, d, TensorRole::attention_k, op.bias_k);
      linear(prefix + "v", op.n_kv_heads * op.d_v, d, TensorRole::attention_v, op.bias_v);
    }
    if (op.qk_norm) {
      const bool all = op.qk_norm->over_all_heads;
      norm(prefix + "q_norm.", op.qk_norm->norm, all ? op.n_heads * op.d_k : op.d_k);
      if (own_kv) norm(prefix + "k_norm.", op.qk_norm->norm, all ? op.n_kv_heads * op.d_k : op.d_k);
    }
    if (op.sink_logits) table(prefix + "sink_logits", 1, op.n_heads, TensorRole::other);
    linear(prefix + "o", d, op.n_heads * op.d_v, TensorRole::attention_o, op.bias_o);
  }
  void ffn(const std::string& prefix, const Ffn& op) {
    const std::size_t d = contract_.d_model;
    if (op.gated) linear(prefix + "gate", op.d_ff, d, TensorRole::ffn_gate, op.bias_in);
    linear(prefix + "up", op.d_ff, d, TensorRole::ffn_up, op.bias_in);
    linear(prefix + "down", d, op.d_ff, TensorRole::ffn_down, op.bias_out);
  }

  const Contract& contract_;
  std::vector<TensorSpec> specs_;
};

}  // namespace

std::string branch_prefix(std::string_view stack, std::size_t layer, std::size_t branch) {
  return base::cat(stack, ".", layer, ".", branch, ".");
}

std::vector<TensorSpec> expected_tensors(const Contract& contract) {
  TensorList list(contract);
  list.embedding();
  if (contract.encoder) list.stack("encoder", *contract.encoder);
  if (contract.decoder) list.stack("decoder", *contract.decoder);
  list.head();
  return list.take();
}

}  // namespace quern::contract
