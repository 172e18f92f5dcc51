// The tensors of each kind of op.
#include "base/strings.hpp"
#include "contract/tensor_list.hpp"

namespace quern::contract {

namespace {

void add_qk_norm(TensorList& list, const std::string& prefix, const QkNorm& spec,
                 std::size_t n_heads, std::size_t d_k) {
  const Norm& kind = list.contract.norms.at(spec.norm);
  const std::size_t rows = spec.over == QkNormOver::each_head ? n_heads : 1;
  const std::size_t width = spec.over == QkNormOver::all ? n_heads * d_k : d_k;
  if (kind.weight) list.table(prefix + "weight", rows, width, TensorRole::norm);
  if (kind.bias) list.table(prefix + "bias", rows, width, TensorRole::norm);
}

void add_attention(TensorList& list, const std::string& prefix, const Attention& op) {
  const std::size_t d = list.contract.d_model;
  const bool own_kv = !op.kv_from.has_value();
  list.linear(prefix + "q", op.n_heads * op.d_k, d, TensorRole::attention_q, op.bias_q);
  if (own_kv) {
    list.linear(prefix + "k", op.n_kv_heads * op.d_k, d, TensorRole::attention_k, op.bias_k);
    list.linear(prefix + "v", op.n_kv_heads * op.d_v, d, TensorRole::attention_v, op.bias_v);
  }
  if (op.qk_norm) {
    add_qk_norm(list, prefix + "q_norm.", *op.qk_norm, op.n_heads, op.d_k);
    if (own_kv) add_qk_norm(list, prefix + "k_norm.", *op.qk_norm, op.n_kv_heads, op.d_k);
  }
  if (op.sink_logits) list.table(prefix + "sink_logits", 1, op.n_heads, TensorRole::other);
  if (op.relative_bias && op.relative_bias->per_layer)
    list.table(prefix + "relative_bias", n_buckets(*op.relative_bias), op.n_heads,
               TensorRole::other);
  list.linear(prefix + "o", d, op.n_heads * op.d_v, TensorRole::attention_o, op.bias_o);
}

void add_mla(TensorList& list, const std::string& prefix, const Mla& op) {
  const std::size_t d = list.contract.d_model, q = op.n_heads * (op.d_nope + op.d_rope);
  if (op.q_rank) {
    list.linear(prefix + "q_a", *op.q_rank, d, TensorRole::attention_q, op.bias_a);
    if (op.q_norm) list.norm(prefix + "q_a_norm.", *op.q_norm, *op.q_rank);
    list.linear(prefix + "q_b", q, *op.q_rank, TensorRole::attention_q, false);
  } else {
    list.linear(prefix + "q", q, d, TensorRole::attention_q, false);
  }
  list.linear(prefix + "kv_a", op.kv_rank + op.d_rope, d, TensorRole::attention_k, op.bias_a);
  list.norm(prefix + "kv_a_norm.", op.kv_norm, op.kv_rank);
  list.linear(prefix + "k_b", op.n_heads * op.d_nope, op.kv_rank, TensorRole::latent, false);
  list.linear(prefix + "v_b", op.n_heads * op.d_v, op.kv_rank, TensorRole::latent, false);
  if (op.indexer) {
    const Indexer& index = *op.indexer;
    const std::string part = prefix + "indexer.";
    list.linear(part + "q", index.n_heads * index.d_k, op.q_rank.value_or(d),
                TensorRole::attention_q, false);
    list.linear(part + "k", index.d_k, d, TensorRole::attention_k, false);
    list.norm(part + "k_norm.", index.k_norm, index.d_k);
    list.linear(part + "weights", index.n_heads, d, TensorRole::router, false);
  }
  list.linear(prefix + "o", d, op.n_heads * op.d_v, TensorRole::attention_o, op.bias_o);
}

// The compression of a block of keys or values: position table added, flattened, two layers.
void add_phi(TensorList& list, const std::string& prefix, const Nsa& op, std::size_t width) {
  list.table(prefix + "_position", op.compress_block, width, TensorRole::positions);
  list.linear(prefix + "_in", op.compress_hidden, op.compress_block * width, TensorRole::other,
              true);
  list.linear(prefix + "_out", width, op.compress_hidden, TensorRole::other, true);
}

void add_nsa(TensorList& list, const std::string& prefix, const Nsa& op) {
  const std::size_t d = list.contract.d_model;
  list.linear(prefix + "q", op.n_heads * op.d_k, d, TensorRole::attention_q, false);
  for (const char* part : {"compress", "select", "window"}) {
    list.linear(base::cat(prefix, part, ".k"), op.n_kv_heads * op.d_k, d, TensorRole::attention_k,
                false);
    list.linear(base::cat(prefix, part, ".v"), op.n_kv_heads * op.d_v, d, TensorRole::attention_v,
                false);
  }
  add_phi(list, prefix + "compress.k", op, op.d_k);
  add_phi(list, prefix + "compress.v", op, op.d_v);
  list.linear(prefix + "gates", 3 * op.n_heads, d, TensorRole::router, true);
  list.linear(prefix + "o", d, op.n_heads * op.d_v, TensorRole::attention_o, false);
}

void add_ffn(TensorList& list, const std::string& prefix, const Ffn& op) {
  const std::size_t d = list.contract.d_model;
  if (op.gated) list.linear(prefix + "gate", op.d_ff, d, TensorRole::ffn_gate, op.bias_in);
  list.linear(prefix + "up", op.d_ff, d, TensorRole::ffn_up, op.bias_in);
  list.linear(prefix + "down", d, op.d_ff, TensorRole::ffn_down, op.bias_out);
}

void add_moe(TensorList& list, const std::string& prefix, const Moe& op) {
  list.linear(prefix + "router", op.n_experts, list.contract.d_model, TensorRole::router,
              op.router.bias);
  if (op.router.select_bias)
    list.table(prefix + "router.select_bias", 1, op.n_experts, TensorRole::bias);
  for (std::size_t e = 0; e < op.n_experts; ++e)
    add_ffn(list, base::cat(prefix, "expert.", e, "."), op.expert);
  if (!op.shared) return;
  add_ffn(list, prefix + "shared.", op.shared->ffn);
  if (op.shared->gate)
    list.linear(prefix + "shared.router", 1, list.contract.d_model, TensorRole::router, false);
}

}  // namespace

void add_op(TensorList& list, const std::string& prefix, const Op& op) {
  if (op.attention) add_attention(list, prefix, *op.attention);
  if (op.mla) add_mla(list, prefix, *op.mla);
  if (op.nsa) add_nsa(list, prefix, *op.nsa);
  if (op.ffn) add_ffn(list, prefix, *op.ffn);
  if (op.moe) add_moe(list, prefix, *op.moe);
}

}  // namespace quern::contract
