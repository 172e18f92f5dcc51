// Parameters and cache values by arithmetic on the widths: block by block, times the repetitions.
// Nothing here looks at the tensor list, so that the two can be compared.
#include <algorithm>

#include "contract/parameters.hpp"
#include "contract/tensors.hpp"

namespace quern::contract {

namespace {

std::uint64_t norm_size(const Contract& contract, const std::optional<std::string>& name,
                        std::uint64_t width) {
  if (!name || *name == kSharedNorm) return 0;
  const Norm& norm = contract.norms.at(*name);
  return ((norm.weight ? 1u : 0u) + (norm.bias ? 1u : 0u)) * width;
}

std::uint64_t attention_size(const Contract& contract, const Attention& op) {
  const std::uint64_t d = contract.d_model;
  const std::uint64_t q = op.n_heads * op.d_k, o = op.n_heads * op.d_v;
  const std::uint64_t k = op.kv_from ? 0 : op.n_kv_heads * op.d_k;
  const std::uint64_t v = op.kv_from ? 0 : op.n_kv_heads * op.d_v;
  std::uint64_t size = d * (q + k + v + o);
  size += (op.bias_q ? q : 0) + (op.bias_k ? k : 0) + (op.bias_v ? v : 0) + (op.bias_o ? d : 0);
  if (op.sink_logits) size += op.n_heads;
  if (op.relative_bias && op.relative_bias->per_layer)
    size += n_buckets(*op.relative_bias) * op.n_heads;
  return size;
}

std::uint64_t qk_norm_size(const Contract& contract, const Attention& op) {
  if (!op.qk_norm) return 0;
  const std::uint64_t heads = op.qk_norm->over == QkNormOver::head
                                  ? (op.kv_from ? 1 : 2)
                                  : op.n_heads + (op.kv_from ? 0 : op.n_kv_heads);
  return norm_size(contract, op.qk_norm->norm, heads * op.d_k);
}

std::uint64_t mla_size(const Contract& contract, const Mla& op) {
  const std::uint64_t d = contract.d_model, q = op.n_heads * (op.d_nope + op.d_rope);
  const std::uint64_t kv_a = op.kv_rank + op.d_rope, q_rank = op.q_rank.value_or(0);
  std::uint64_t size = op.q_rank ? q_rank * (d + q) : d * q;
  size += d * kv_a + op.kv_rank * op.n_heads * (op.d_nope + op.d_v) + op.n_heads * op.d_v * d;
  size += (op.bias_a ? q_rank + kv_a : 0) + (op.bias_o ? d : 0);
  if (op.indexer)
    size += op.indexer->n_heads * op.indexer->d_k * op.q_rank.value_or(d) + op.indexer->d_k * d +
            op.indexer->n_heads * d;
  return size;
}

std::uint64_t mla_norm_size(const Contract& contract, const Mla& op) {
  std::uint64_t size = norm_size(contract, op.kv_norm, op.kv_rank);
  if (op.q_rank) size += norm_size(contract, op.q_norm, *op.q_rank);
  if (op.indexer) size += norm_size(contract, op.indexer->k_norm, op.indexer->d_k);
  return size;
}

std::uint64_t phi_size(const Nsa& op, std::uint64_t width) {
  return op.compress_block * width * (1 + op.compress_hidden) + op.compress_hidden +
         op.compress_hidden * width + width;
}

std::uint64_t nsa_size(const Contract& contract, const Nsa& op) {
  const std::uint64_t d = contract.d_model;
  return d * op.n_heads * (op.d_k + op.d_v) + 3 * d * op.n_kv_heads * (op.d_k + op.d_v) +
         phi_size(op, op.d_k) + phi_size(op, op.d_v) + 3 * op.n_heads * (d + 1);
}

std::uint64_t ffn_size(const Contract& contract, const Ffn& op) {
  const std::uint64_t inputs = op.gated ? 2 : 1;
  return (inputs + 1) * contract.d_model * op.d_ff + (op.bias_in ? inputs * op.d_ff : 0) +
         (op.bias_out ? contract.d_model : 0);
}

std::uint64_t moe_size(const Contract& contract, const Moe& op, std::uint64_t experts) {
  std::uint64_t size = op.n_experts * (contract.d_model + (op.router.bias ? 1 : 0) +
                                       (op.router.select_bias ? 1 : 0));
  size += experts * ffn_size(contract, op.expert);
  if (op.shared)
    size += ffn_size(contract, op.shared->ffn) + (op.shared->gate ? contract.d_model : 0);
  return size;
}

void add_op(const Contract& contract, const Op& op, std::uint64_t times, ParameterParts& parts) {
  if (op.attention) {
    parts.attention += times * attention_size(contract, *op.attention);
    parts.norms += times * qk_norm_size(contract, *op.attention);
  }
  if (op.mla) {
    parts.attention += times * mla_size(contract, *op.mla);
    parts.norms += times * mla_norm_size(contract, *op.mla);
  }
  if (op.nsa) parts.attention += times * nsa_size(contract, *op.nsa);
  if (op.ffn) parts.ffn += times * ffn_size(contract, *op.ffn);
  if (op.moe) {
    const std::uint64_t total = moe_size(contract, *op.moe, op.moe->n_experts);
    parts.ffn += times * total;
    parts.inactive += times * (total - moe_size(contract, *op.moe, op.moe->top_k));
  }
}

void add_block(const Contract& contract, const Block& block, std::uint64_t times,
               ParameterParts& parts) {
  for (const Branch& branch : block.branches) {
    add_op(contract, contract.ops.at(branch.op), times, parts);
    for (const auto* name : {&branch.norm_in, &branch.norm_out, &branch.norm_after})
      parts.norms += times * norm_size(contract, *name, contract.d_model);
  }
}

void add_stack(const Contract& contract, const Stack& stack, ParameterParts& parts) {
  if (const RelativeBias* bias = stack_relative_bias(contract, stack))
    parts.attention += n_buckets(*bias) * stack_bias_heads(contract, stack);
  for (const LayerGroup& group : stack.layers)
    for (const std::string& name : group.pattern)
      add_block(contract, contract.blocks.at(name),
                group.share_weights ? std::min<std::uint64_t>(1, group.repeat) : group.repeat,
                parts);
  parts.norms += norm_size(contract, stack.final_norm, contract.d_model);
}

std::uint64_t op_cache_values(const Op& op) {
  if (const auto& a = op.attention)
    return a->kv_from || a->source == AttentionSource::encoder
               ? 0
               : std::uint64_t{a->n_kv_heads} * (a->d_k + a->d_v);
  if (const auto& m = op.mla)
    return std::uint64_t{m->kv_rank} + m->d_rope + (m->indexer ? m->indexer->d_k : 0);
  if (const auto& n = op.nsa) return 3 * std::uint64_t{n->n_kv_heads} * (n->d_k + n->d_v);
  return 0;
}

std::uint64_t op_encoder_cache_values(const Op& op) {
  const auto& a = op.attention;
  return a && a->source == AttentionSource::encoder
             ? std::uint64_t{a->n_kv_heads} * (a->d_k + a->d_v)
             : 0;
}

// The sum of `values_of` over the ops of the decoder's layers.
std::uint64_t decoder_cache_values(const Contract& contract,
                                   std::uint64_t (*values_of)(const Op&)) {
  std::uint64_t values = 0;
  if (!contract.decoder) return values;
  for (const LayerGroup& group : contract.decoder->layers)
    for (const std::string& name : group.pattern)
      for (const Branch& branch : contract.blocks.at(name).branches)
        values += group.repeat * values_of(contract.ops.at(branch.op));
  return values;
}

void add_embedding(const Contract& contract, const Embedding& embedding, std::uint64_t own_vocab,
                   ParameterParts& parts) {
  const std::uint64_t d = contract.d_model, d_embed = embedding.d_embed;
  parts.embedding += (own_vocab + embedding.token_types) * d_embed;
  if (embedding.project_in) parts.embedding += d * d_embed + (embedding.project_bias ? d : 0);
  if (embedding.positions && embedding.positions->kind == PositionTableKind::learned)
    parts.positions += embedding.positions->rows * (embedding.positions->after_project ? d : d_embed);
  parts.norms += norm_size(contract, embedding.norm, d_embed);
}

void add_head(const Contract& contract, ParameterParts& parts) {
  const Head& head = contract.head;
  if (head.kind == HeadKind::none) return;
  const std::uint64_t outputs = head_outputs(contract), inputs = head_inputs(contract);
  parts.head = (head.tied ? 0 : outputs * inputs) + (head.bias ? outputs : 0);
  if (!head.transform) return;
  parts.head += inputs * contract.d_model + (head.transform->bias ? inputs : 0);
  parts.norms += norm_size(contract, head.transform->norm, inputs);
}

void add_pooling(const Contract& contract, ParameterParts& parts) {
  if (!contract.pooling) return;
  std::uint64_t width = contract.d_model;
  for (const HeadTransform& layer : contract.pooling->dense) {
    parts.head += layer.d_out * width + (layer.bias ? layer.d_out : 0);
    parts.norms += norm_size(contract, layer.norm, layer.d_out);
    width = layer.d_out;
  }
}

}  // namespace

ParameterParts parameter_parts(const Contract& contract) {
  ParameterParts parts;
  add_embedding(contract, contract.embedding, contract.vocab_size, parts);
  if (contract.encoder && contract.encoder->embedding) {
    const EncoderEmbedding& own = *contract.encoder->embedding;
    add_embedding(contract, own.embedding, own.own_tokens ? own.vocab_size : 0, parts);
  }
  if (contract.encoder) add_stack(contract, *contract.encoder, parts);
  if (contract.decoder) add_stack(contract, *contract.decoder, parts);
  add_head(contract, parts);
  add_pooling(contract, parts);
  return parts;
}

ParameterParts stack_parts(const Contract& contract, const Stack& stack) {
  ParameterParts parts;
  add_stack(contract, stack, parts);
  return parts;
}

ParameterParts block_parts(const Contract& contract, const Block& block) {
  ParameterParts parts;
  add_block(contract, block, 1, parts);
  return parts;
}

std::uint64_t parameters_by_formula(const Contract& contract) {
  return parameter_parts(contract).total();
}

std::uint64_t cache_values_per_token(const Contract& contract) {
  return decoder_cache_values(contract, op_cache_values);
}

std::uint64_t cache_values_per_encoder_token(const Contract& contract) {
  return decoder_cache_values(contract, op_encoder_cache_values);
}

}  // namespace quern::contract
