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
  return size;
}

std::uint64_t qk_norm_size(const Contract& contract, const Attention& op) {
  if (!op.qk_norm) return 0;
  const std::uint64_t heads = op.qk_norm->over_all_heads
                                  ? op.n_heads + (op.kv_from ? 0 : op.n_kv_heads)
                                  : (op.kv_from ? 1 : 2);
  return norm_size(contract, op.qk_norm->norm, heads * op.d_k);
}

std::uint64_t ffn_size(const Contract& contract, const Ffn& op) {
  const std::uint64_t inputs = op.gated ? 2 : 1;
  return (inputs + 1) * contract.d_model * op.d_ff + (op.bias_in ? inputs * op.d_ff : 0) +
         (op.bias_out ? contract.d_model : 0);
}

void add_block(const Contract& contract, const Block& block, std::uint64_t times,
               ParameterParts& parts) {
  for (const Branch& branch : block.branches) {
    const Op& op = contract.ops.at(branch.op);
    if (op.attention) {
      parts.attention += times * attention_size(contract, *op.attention);
      parts.norms += times * qk_norm_size(contract, *op.attention);
    }
    if (op.ffn) parts.ffn += times * ffn_size(contract, *op.ffn);
    for (const auto* name : {&branch.norm_in, &branch.norm_out, &branch.norm_after})
      parts.norms += times * norm_size(contract, *name, contract.d_model);
  }
}

void add_stack(const Contract& contract, const std::optional<Stack>& stack, ParameterParts& parts) {
  if (!stack) return;
  for (const LayerGroup& group : stack->layers)
    for (const std::string& name : group.pattern)
      add_block(contract, contract.blocks.at(name),
                group.share_weights ? std::min<std::uint64_t>(1, group.repeat) : group.repeat,
                parts);
  parts.norms += norm_size(contract, stack->final_norm, contract.d_model);
}

std::uint64_t block_cache_values(const Contract& contract, const Block& block) {
  std::uint64_t values = 0;
  for (const Branch& branch : block.branches)
    if (const auto& op = contract.ops.at(branch.op).attention; op && !op->kv_from)
      values += std::uint64_t{op->n_kv_heads} * (op->d_k + op->d_v);
  return values;
}

}  // namespace

ParameterParts parameter_parts(const Contract& contract) {
  const std::uint64_t vocab = contract.vocab_size, d = contract.d_model,
                      d_embed = contract.embedding.d_embed;
  const Embedding& embedding = contract.embedding;
  ParameterParts parts;
  parts.embedding =
      vocab * d_embed + embedding.token_types * d_embed + (embedding.project_in ? d * d_embed : 0);
  parts.positions = embedding.positions ? embedding.positions->rows * d_embed : 0;
  parts.norms = norm_size(contract, embedding.norm, d_embed);
  add_stack(contract, contract.encoder, parts);
  add_stack(contract, contract.decoder, parts);
  if (contract.head.kind == HeadKind::lm)
    parts.head = (contract.head.tied ? 0 : vocab * d) + (contract.head.bias ? vocab : 0);
  return parts;
}

std::uint64_t parameters_by_formula(const Contract& contract) {
  return parameter_parts(contract).total();
}

std::uint64_t cache_values_per_token(const Contract& contract) {
  std::uint64_t values = 0;
  if (!contract.decoder) return values;
  for (const LayerGroup& group : contract.decoder->layers)
    for (const std::string& name : group.pattern)
      values += group.repeat * block_cache_values(contract, contract.blocks.at(name));
  return values;
}

}  // namespace quern::contract
