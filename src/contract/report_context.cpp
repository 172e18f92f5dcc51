// Points 5 and 6 of the report: who sees whom, and positions.
#include "base/strings.hpp"
#include "contract/json_printer.hpp"
#include "contract/report.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::cat;
using base::grouped;

namespace {

std::string mask_text(const Mask& mask) {
  std::string text(base::enum_name(mask.kind, kMaskKinds));
  switch (mask.kind) {
    case MaskKind::causal:
      text += mask.window
                  ? cat(", window of ", grouped(*mask.window), " keys, the query's own included")
                  : ", all positions up to the query's own";
      break;
    case MaskKind::bidirectional:
      text += mask.window ? cat(", keys less than ", grouped(*mask.window), " positions away")
                          : ", all positions of the sequence";
      break;
    case MaskKind::prefix:
      text += ", and the first P positions (a number of the request) see each other";
      break;
  }
  if (mask.sinks > 0) text += cat(", and the first ", mask.sinks, " positions always");
  return text;
}

std::string nsa_pattern(const Nsa& n) {
  return cat("rows of ", n.compress_block, " keys, one every ", n.compress_stride, "; ",
             n.n_selected, " blocks of ", n.select_block, " keys, of them the first ", n.n_initial,
             " and the newest ", n.n_local, "; the last ", grouped(n.window), " keys");
}

}  // namespace

ReportSection mask_point(const Contract& contract) {
  ReportSection out{"5. Mask", {}};
  std::vector<ReportRow> patterns;
  for (const auto& [name, op] : contract.ops) {
    const std::string label = entry_label("attention", name);
    if (op.attention && op.attention->source == AttentionSource::encoder)
      out.rows.push_back({label, "every position of the encoder's input"});
    else if (op.attention)
      out.rows.push_back({label, mask_text(op.attention->mask)});
    if (op.mla) out.rows.push_back({label, mask_text(op.mla->mask)});
    if (op.nsa) {
      out.rows.push_back({label, "causal, within the pattern"});
      patterns.push_back({"sparse pattern", cat("\"", name, "\": ", nsa_pattern(*op.nsa))});
    }
    if (op.mla && op.mla->indexer)
      patterns.push_back(
          {"sparse pattern", cat("\"", name, "\": the ", grouped(op.mla->indexer->top_k),
                                 " keys that the indexer scores best")});
  }
  out.rows.push_back(
      {"document boundary", "a sequence is one document; nothing is visible across sequences"});
  if (patterns.empty()) patterns.push_back({"sparse pattern", "none"});
  out.rows.insert(out.rows.end(), patterns.begin(), patterns.end());
  return out;
}

namespace {

// The finished table, eight values a line.
std::string table_text(const std::vector<float>& table) {
  std::string out;
  for (std::size_t i = 0; i < table.size(); ++i)
    out += cat(i % 8 == 0 ? "\n" : " ", print_json_inline(json_float(table[i])));
  return out;
}

std::string rope_text(const Rope& rope) {
  std::string text =
      cat("rule ", rope.rule, ", base ", number_text(rope.base), ", ", rope.dims,
          " dimensions, layout ", base::enum_name(rope.layout, kRopeLayouts),
          rope.layout == RopeLayout::half ? cat(" (i, i + ", rope.dims / 2, ")") : " (2i, 2i + 1)",
          "\ncosine and sine x ", number_text(rope.mscale),
          "\nfrequencies (radians per position):", table_text(rope.inv_freq));
  if (!rope.switch_rule) return text;
  const RopeSwitch& rule = *rope.switch_rule;
  text +=
      cat("\nabove ", grouped(rule.original_length),
          " positions, chosen once per request: ", base::enum_name(rule.kind, kRopeSwitchKinds));
  if (rule.kind == RopeSwitchKind::dynamic_ntk)
    return text + cat(", base ", number_text(rule.base), ", factor ", number_text(rule.factor));
  return text + cat(", cosine and sine x ", number_text(rule.long_mscale),
                    ", frequencies:", table_text(rule.long_inv_freq));
}

std::string rotation(const Contract& contract, const std::optional<std::string>& rope,
                     std::string_view of) {
  if (!rope) return "no rotation";
  return cat("rope ", *rope, ", ", contract.ropes.at(*rope).dims, " of ", of, " dimensions");
}

std::string bias_text(const RelativeBias& bias) {
  std::string text =
      cat("\nrelative bias: ", bias.starts.size() * (bias.bidirectional ? 2 : 1),
          bias.bidirectional ? " buckets, half of them for keys after the query" : " buckets",
          bias.per_layer ? ", a table per layer" : ", one table for the stack",
          "; buckets begin at the distances");
  for (std::size_t i = 0; i < bias.starts.size(); ++i)
    text += cat(i % 16 == 0 ? "\n" : " ", bias.starts[i]);
  return text;
}

std::string position_text(const Contract& contract, const Op& op) {
  if (op.mla) {
    std::string text = rotation(contract, op.mla->rope, cat(op.mla->d_nope + op.mla->d_rope)) +
                       ", the last of a head";
    if (op.mla->indexer)
      text +=
          cat("\nindexer: ", rotation(contract, op.mla->indexer->rope, cat(op.mla->indexer->d_k)));
    return text;
  }
  if (op.nsa) return rotation(contract, op.nsa->rope, cat(op.nsa->d_k)) + ", before compression";
  const Attention& a = *op.attention;
  std::string text = rotation(contract, a.rope, cat(a.d_k));
  if (a.alibi)
    text += cat("\nALiBi, added ", a.alibi->before_scale ? "before" : "after",
                " the scale", a.alibi->round ? ", rounded to bf16" : "", ", slopes:", table_text(a.alibi->slopes));
  if (a.relative_bias) text += bias_text(*a.relative_bias);
  return text;
}

void add_table_row(const std::string& label, const Embedding& embedding,
                   std::vector<ReportRow>& rows) {
  const auto& table = embedding.positions;
  if (!table) return;
  std::string text = cat(base::enum_name(table->kind, kPositionTableKinds), ", ",
                         grouped(table->rows), " rows, row = position + ", table->offset,
                         table->pad ? cat(" (token ", *table->pad, " is not counted)") : "",
                         table->after_project ? ", added after the projection" : "");
  if (table->order)
    text += cat(", sines and cosines ",
                *table->order == SinusoidOrder::halves ? "in two halves" : "interleaved");
  rows.push_back({label, text});
}

}  // namespace

ReportSection positions_point(const Contract& contract) {
  ReportSection out{"6. Positions", {{"trained length", grouped(contract.max_positions)}}};
  add_table_row("position table", contract.embedding, out.rows);
  if (contract.encoder && contract.encoder->embedding)
    add_table_row("encoder position table", contract.encoder->embedding->embedding, out.rows);
  for (const auto& [name, rope] : contract.ropes)
    out.rows.push_back({entry_label("rope", name), rope_text(rope)});
  for (const auto& [name, op] : contract.ops)
    if (op.attention || op.mla || op.nsa)
      out.rows.push_back({entry_label("attention", name), position_text(contract, op)});
  return out;
}

}  // namespace quern::contract
