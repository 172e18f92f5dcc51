// Parameters by component and per layer.
#include <algorithm>

#include "base/strings.hpp"
#include "contract/parameters.hpp"
#include "contract/report.hpp"
#include "contract/tensors.hpp"

namespace quern::contract {

using base::cat;
using base::grouped;

std::string percent_text(std::uint64_t part, std::uint64_t total) {
  // In tenths, rounded; the largest counts times 2000 fit in 64 bits (kMaxParameters).
  const std::uint64_t whole = std::max<std::uint64_t>(total, 1);
  const std::uint64_t tenths = (part * 2000 / whole + 1) / 2;
  return cat(tenths / 10, ".", tenths % 10, " %");
}

namespace {

// What decoding does not read: the encoder, and K and V of its output.
std::uint64_t read_once_per_request(const Contract& contract) {
  if (!contract.encoder || !contract.decoder) return 0;
  Contract alone = contract;
  alone.encoder.reset();
  std::uint64_t once = parameters_by_formula(contract) - parameters_by_formula(alone);
  for (const LayerRun& run : layers_by_block(contract, *contract.decoder))
    for (const Branch& branch : contract.blocks.at(run.block_name).branches)
      if (const auto& a = contract.ops.at(branch.op).attention;
          a && a->source == AttentionSource::encoder)
        once += run.layers.size() * a->n_kv_heads *
                (a->d_k * (contract.d_model + a->bias_k) + a->d_v * (contract.d_model + a->bias_v));
  return once;
}

std::string layer_text(const ParameterParts& parts) {
  std::string text = cat(grouped(parts.total()), ": ", percent_text(parts.attention, parts.total()),
                         " attention, ", percent_text(parts.ffn, parts.total()), " ffn, ",
                         percent_text(parts.norms, parts.total()), " norms");
  if (parts.inactive > 0) text += cat("; active ", grouped(parts.active()));
  return text;
}

}  // namespace

// Everything but the rows of the embedding and position tables a token does not look up (a tied
// embedding is read whole, as the head), the experts it does not use, and the encoder.
std::uint64_t parameters_read_per_token(const Contract& contract) {
  const ParameterParts parts = parameter_parts(contract);
  const Embedding& embedding = contract.embedding;
  std::uint64_t unread = read_once_per_request(contract);
  if (!contract.head.tied) unread += (contract.vocab_size - 1) * embedding.d_embed;
  if (embedding.token_types > 0) unread += (embedding.token_types - 1) * embedding.d_embed;
  if (embedding.positions && embedding.positions->kind == PositionTableKind::learned)
    unread += (embedding.positions->rows - 1) * embedding.d_embed;
  return parts.active() - std::min(parts.active(), unread);
}

std::vector<ReportRow> parameter_rows(const Contract& contract) {
  const ParameterParts parts = parameter_parts(contract);
  std::vector<ReportRow> rows;
  const auto add = [&](std::string_view name, std::uint64_t count) {
    rows.push_back(
        {std::string(name), cat(grouped(count), "  (", percent_text(count, parts.total()), ")")});
  };
  add("embedding", parts.embedding);
  add("positions", parts.positions);
  add("attention", parts.attention);
  add("ffn", parts.ffn);
  add("norms", parts.norms);
  add("head", parts.head);
  rows.push_back({"total", grouped(parts.total())});
  rows.push_back({"active", parts.inactive == 0
                                ? cat(grouped(parts.total()), " (every block runs for every token)")
                                : cat(grouped(parts.active()), "  (",
                                      percent_text(parts.active(), parts.total()), ")")});
  rows.push_back({"read per token", grouped(parameters_read_per_token(contract))});
  for (const auto& [name, block] : contract.blocks)
    rows.push_back({entry_label("a layer, block", name), layer_text(block_parts(contract, block))});
  return rows;
}

}  // namespace quern::contract
