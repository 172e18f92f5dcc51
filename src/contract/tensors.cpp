#include "contract/tensors.hpp"

#include "base/strings.hpp"

namespace quern::contract {

namespace {

// Collects the list; every method adds the tensors of one part under a prefix that ends with a dot.
class TensorList {
 public:
  explicit TensorList(const Contract& contract) : contract_(contract) {}
  std::vector<TensorSpec> take() { return std::move(specs_); }

  void embedding(const std::string& prefix, const Embedding& spec, std::size_t own_vocab) {
    if (own_vocab > 0) matrix(prefix + "tokens", own_vocab, spec.d_embed, TensorRole::embedding);
    if (spec.positions) {
      table(prefix + "positions", spec.positions->rows, spec.d_embed, TensorRole::positions);
      specs_.back().computed = spec.positions->kind == PositionTableKind::sinusoidal;
    }
    if (spec.token_types > 0)
      table(prefix + "token_types", spec.token_types, spec.d_embed, TensorRole::other);
    if (spec.norm) norm(prefix + "norm.", *spec.norm, spec.d_embed);
    if (spec.project_in)
      linear(prefix + "project", contract_.d_model, spec.d_embed, TensorRole::other,
             spec.project_bias);
  }

  void stack(std::string_view name, const Stack& stack) {
    if (const RelativeBias* bias = stack_relative_bias(contract_, stack))
      table(base::cat(name, ".relative_bias"), n_buckets(*bias), stack_bias_heads(contract_, stack),
            TensorRole::other);
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
    if (spec.kind == HeadKind::none) return;
    if (spec.transform) {
      linear("head.transform", spec.transform->d_out, contract_.d_model, TensorRole::other,
             spec.transform->bias);
      if (spec.transform->norm)
        norm("head.transform.norm.", *spec.transform->norm, spec.transform->d_out);
    }
    if (!spec.tied)
      matrix("head.weight", head_outputs(contract_), head_inputs(contract_), TensorRole::head);
    if (spec.bias) table("head.bias", 1, head_outputs(contract_), TensorRole::bias);
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
    op(prefix, contract_.ops.at(branch.op));
    if (branch.norm_out) norm(prefix + "norm_out.", *branch.norm_out, contract_.d_model);
    if (branch.norm_after) norm(prefix + "norm_after.", *branch.norm_after, contract_.d_model);
  }
  void op(const std::string& prefix, const Op& op) {
    if (op.attention) attention(prefix, *op.attention);
    if (op.mla) mla(prefix, *op.mla);
    if (op.nsa) nsa(prefix, *op.nsa);
    if (op.ffn) ffn(prefix, *op.ffn);
    if (op.moe) moe(prefix, *op.moe);
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
      qk_norm(prefix + "q_norm.", *op.qk_norm, op.n_heads, op.d_k);
      if (own_kv) qk_norm(prefix + "k_norm.", *op.qk_norm, op.n_kv_heads, op.d_k);
    }
    if (op.sink_logits) table(prefix + "sink_logits", 1, op.n_heads, TensorRole::other);
    if (op.relative_bias && op.relative_bias->per_layer)
      table(prefix + "relative_bias", n_buckets(*op.relative_bias), op.n_heads, TensorRole::other);
    linear(prefix + "o", d, op.n_heads * op.d_v, TensorRole::attention_o, op.bias_o);
  }
  void qk_norm(const std::string& prefix, const QkNorm& spec, std::size_t n_heads,
               std::size_t d_k) {
    const Norm& kind = contract_.norms.at(spec.norm);
    const std::size_t rows = spec.over == QkNormOver::each_head ? n_heads : 1;
    const std::size_t width = spec.over == QkNormOver::all ? n_heads * d_k : d_k;
    if (kind.weight) table(prefix + "weight", rows, width, TensorRole::norm);
    if (kind.bias) table(prefix + "bias", rows, width, TensorRole::norm);
  }
  void mla(const std::string& prefix, const Mla& op) {
    const std::size_t d = contract_.d_model, q = op.n_heads * (op.d_nope + op.d_rope);
    if (op.q_rank) {
      linear(prefix + "q_a", *op.q_rank, d, TensorRole::attention_q, op.bias_a);
      if (op.q_norm) norm(prefix + "q_a_norm.", *op.q_norm, *op.q_rank);
      linear(prefix + "q_b", q, *op.q_rank, TensorRole::attention_q, false);
    } else {
      linear(prefix + "q", q, d, TensorRole::attention_q, false);
    }
    linear(prefix + "kv_a", op.kv_rank + op.d_rope, d, TensorRole::attention_k, op.bias_a);
    norm(prefix + "kv_a_norm.", op.kv_norm, op.kv_rank);
    linear(prefix + "k_b", op.n_heads * op.d_nope, op.kv_rank, TensorRole::latent, false);
    linear(prefix + "v_b", op.n_heads * op.d_v, op.kv_rank, TensorRole::latent, false);
    if (op.indexer) {
      const Indexer& index = *op.indexer;
      const std::string part = prefix + "indexer.";
      linear(part + "q", index.n_heads * index.d_k, op.q_rank.value_or(d), TensorRole::attention_q,
             false);
      linear(part + "k", index.d_k, d, TensorRole::attention_k, false);
      norm(part + "k_norm.", index.k_norm, index.d_k);
      linear(part + "weights", index.n_heads, d, TensorRole::router, false);
    }
    linear(prefix + "o", d, op.n_heads * op.d_v, TensorRole::attention_o, op.bias_o);
  }
  void nsa(const std::string& prefix, const Nsa& op) {
    const std::size_t d = contract_.d_model;
    linear(prefix + "q", op.n_heads * op.d_k, d, TensorRole::attention_q, false);
    for (const char* part : {"compress", "select", "window"}) {
      linear(base::cat(prefix, part, ".k"), op.n_kv_heads * op.d_k, d, TensorRole::attention_k,
             false);
      linear(base::cat(prefix, part, ".v"), op.n_kv_heads * op.d_v, d, TensorRole::attention_v,
             false);
    }
    phi(prefix + "compress.k", op, op.d_k);
    phi(prefix + "compress.v", op, op.d_v);
    linear(prefix + "gates", 3 * op.n_heads, d, TensorRole::router, true);
    linear(prefix + "o", d, op.n_heads * op.d_v, TensorRole::attention_o, false);
  }
  // The compression of a block of keys or values: position table added, flattened, two layers.
  void phi(const std::string& prefix, const Nsa& op, std::size_t width) {
    table(prefix + "_position", op.compress_block, width, TensorRole::positions);
    linear(prefix + "_in", op.compress_hidden, op.compress_block * width, TensorRole::other, true);
    linear(prefix + "_out", width, op.compress_hidden, TensorRole::other, true);
  }
  void moe(const std::string& prefix, const Moe& op) {
    linear(prefix + "router", op.n_experts, contract_.d_model, TensorRole::router, op.router.bias);
    if (op.router.select_bias)
      table(prefix + "router.select_bias", 1, op.n_experts, TensorRole::bias);
    for (std::size_t e = 0; e < op.n_experts; ++e)
      ffn(base::cat(prefix, "expert.", e, "."), op.expert);
    if (!op.shared) return;
    ffn(prefix + "shared.", op.shared->ffn);
    if (op.shared->gate)
      linear(prefix + "shared.router", 1, contract_.d_model, TensorRole::router, false);
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

std::string_view role_name(TensorRole role) {
  switch (role) {
    case TensorRole::embedding:
      return "embedding";
    case TensorRole::positions:
      return "positions";
    case TensorRole::norm:
      return "norm";
    case TensorRole::attention_q:
      return "attention q";
    case TensorRole::attention_k:
      return "attention k";
    case TensorRole::attention_v:
      return "attention v";
    case TensorRole::attention_o:
      return "attention o";
    case TensorRole::latent:
      return "attention latent";
    case TensorRole::ffn_gate:
      return "ffn gate";
    case TensorRole::ffn_up:
      return "ffn up";
    case TensorRole::ffn_down:
      return "ffn down";
    case TensorRole::router:
      return "router";
    case TensorRole::head:
      return "head";
    case TensorRole::bias:
      return "bias";
    case TensorRole::other:
      return "other";
  }
  return "other";
}

std::string branch_prefix(std::string_view stack, std::size_t layer, std::size_t branch) {
  return base::cat(stack, ".", layer, ".", branch, ".");
}

std::size_t n_buckets(const RelativeBias& bias) {
  return bias.starts.size() * (bias.bidirectional ? 2 : 1);
}

std::size_t head_outputs(const Contract& contract) {
  return contract.head.kind == HeadKind::classify ? contract.head.labels.size()
                                                  : contract.vocab_size;
}

std::size_t head_inputs(const Contract& contract) {
  return contract.head.transform ? contract.head.transform->d_out : contract.d_model;
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
  list.embedding("embedding.", contract.embedding, contract.vocab_size);
  if (contract.encoder) {
    if (const auto& own = contract.encoder->embedding)
      list.embedding("encoder.embedding.", own->embedding, own->own_tokens ? own->vocab_size : 0);
    list.stack("encoder", *contract.encoder);
  }
  if (contract.decoder) list.stack("decoder", *contract.decoder);
  list.head();
  return list.take();
}

}  // namespace quern::contract
