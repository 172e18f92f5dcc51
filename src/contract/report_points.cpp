#include <algorithm>
#include <cmath>

#include "base/strings.hpp"
#include "contract/json_printer.hpp"
#include "contract/parameters.hpp"
#include "contract/report.hpp"
#include "contract/tensors.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::cat;
using base::grouped;

std::string number_text(double value) {
  return print_json_inline(base::Json(value));
}

namespace {

std::string yes_no(bool value) {
  return value ? "yes" : "no";
}

// "q k v" of the biases that exist, "none"
std::string bias_list(std::initializer_list<std::pair<const char*, bool>> biases) {
  std::string out;
  for (const auto& [name, present] : biases)
    if (present) out += cat(out.empty() ? "" : " ", name);
  return out.empty() ? "none" : out;
}

ReportSection embedding_point(const Contract& contract) {
  const Head& head = contract.head;
  return {"1. Vocabulary and ends",
          {{"vocabulary size", grouped(contract.vocab_size)},
           {"embedding", cat("[", contract.vocab_size, ", ", contract.embedding.d_embed, "]")},
           {"embedding scale", number_text(contract.embedding.scale)},
           {"embedding norm", contract.embedding.norm.value_or("none")},
           {"output", cat("[tokens, ", contract.vocab_size, "]",
                          head.tied ? ", tied to the embedding" : ", a matrix of its own")},
           {"output bias", yes_no(head.bias)}}};
}

std::string ffn_text(const Ffn& op, std::size_t d_model) {
  return cat(
      op.gated ? "gated, " : "plain, ", base::enum_name(op.activation, kActivations), ", width ",
      grouped(op.d_ff), " (",
      number_text(std::round(100.0 * static_cast<double>(op.d_ff) / static_cast<double>(d_model)) /
                  100.0),
      " x d_model), biases: ", bias_list({{"in", op.bias_in}, {"out", op.bias_out}}));
}

ReportSection blocks_point(const Contract& contract) {
  ReportSection out{"2. Blocks and widths", {}};
  std::size_t n_layers = 0;
  const std::vector<LayerRun> runs = layers_by_block(contract);
  for (const LayerRun& run : runs) n_layers += run.layers.size();
  out.rows.push_back({"blocks", grouped(n_layers)});
  out.rows.push_back({"d_model", grouped(contract.d_model)});
  for (const LayerRun& run : runs)
    out.rows.push_back({cat("block \"", run.block_name, "\""), layer_list(run.layers)});
  for (const LayerGroup& group : contract.decoder->layers)
    if (group.share_weights && group.repeat > 1)
      out.rows.push_back(
          {"shared weights", cat(group.pattern.size(), " layers, used ", group.repeat, " times")});
  for (const auto& [name, op] : contract.ops)
    if (op.ffn)
      out.rows.push_back({cat("ffn \"", name, "\""), ffn_text(*op.ffn, contract.d_model)});
  return out;
}

// Where the norms of a branch stand, in the words people use.
std::string norm_place(const Branch& branch) {
  const auto name = [](const std::optional<std::string>& norm) { return norm.value_or("none"); };
  std::string word;
  if (branch.norm_in == kSharedNorm)
    word = "the normed input of the branch before";
  else if (branch.norm_in)
    word = cat("pre (", name(branch.norm_in), ")");
  if (branch.norm_out)
    word += cat(word.empty() ? "" : " + ", "on the output (", name(branch.norm_out), ")");
  if (branch.norm_after)
    word += cat(word.empty() ? "" : " + ", "post, on the sum (", name(branch.norm_after), ")");
  return word.empty() ? "no norm" : word;
}

ReportSection residual_point(const Contract& contract) {
  ReportSection out{"3. Residual order and norms", {}};
  for (const auto& [name, block] : contract.blocks) {
    std::string text(base::enum_name(block.residual, kResiduals));
    if (block.skip_scale != 1) text += cat(", stream x ", number_text(block.skip_scale));
    for (const Branch& branch : block.branches) {
      text += cat("\n", branch.op, ": ", norm_place(branch));
      if (branch.in_scale != 1) text += cat(", input x ", number_text(branch.in_scale));
      if (branch.out_scale != 1) text += cat(", output x ", number_text(branch.out_scale));
    }
    out.rows.push_back({cat("block \"", name, "\""), text});
  }
  for (const auto& [name, norm] : contract.norms)
    out.rows.push_back(
        {cat("norm \"", name, "\""),
         cat(base::enum_name(norm.kind, kNormKinds), ", eps ", number_text(norm.eps), ", sums in ",
             base::enum_name(norm.accumulate, kAccumulates), ", weight: ", yes_no(norm.weight),
             " (offset ", print_json_inline(json_plain_number(norm.weight_offset)),
             "), bias: ", yes_no(norm.bias))});
  return out;
}

std::string head_mapping(const Attention& op) {
  const std::size_t share = op.n_heads / op.n_kv_heads;
  const char* kind = share == 1 ? "multi-head" : op.n_kv_heads == 1 ? "multi-query" : "grouped";
  return cat(kind, ": query head h reads KV head ",
             share == 1           ? "h"
             : op.n_kv_heads == 1 ? "0"
                                  : cat("floor(h / ", share, ")"));
}

std::string scale_text(const Attention& op) {
  const double usual = 1 / std::sqrt(static_cast<double>(op.d_k));
  return cat(number_text(op.scale),
             std::fabs(op.scale - usual) <= 1e-7 * usual ? " (1/sqrt(d_k))" : "");
}

ReportSection attention_point(const Contract& contract) {
  ReportSection out{"4. Attention", {}};
  for (const auto& [name, op] : contract.ops) {
    if (!op.attention) continue;
    const Attention& a = *op.attention;
    std::string text =
        cat(a.n_heads, " query heads, ", a.n_kv_heads, " KV heads, d_k ", a.d_k, ", d_v ", a.d_v);
    text += cat("\n", head_mapping(a), "\nscale ", scale_text(a));
    text += cat("\nbiases: ",
                bias_list({{"q", a.bias_q}, {"k", a.bias_k}, {"v", a.bias_v}, {"o", a.bias_o}}));
    text +=
        cat("\nQK-norm: ", a.qk_norm ? cat(a.qk_norm->norm, " over ",
                                           base::enum_name(a.qk_norm->over_all_heads, kQkNormOver))
                                     : "none");
    text += cat(", soft-cap: ", a.softcap ? number_text(*a.softcap) : "none");
    text += cat(", sink logits: ", a.sink_logits ? "one per head" : "none");
    if (a.kv_from) text += cat("\nreads the keys and values of layer ", *a.kv_from);
    out.rows.push_back({cat("attention \"", name, "\""), text});
  }
  return out;
}

ReportSection mask_point(const Contract& contract) {
  ReportSection out{"5. Mask", {}};
  for (const auto& [name, op] : contract.ops) {
    if (!op.attention) continue;
    const Mask& mask = op.attention->mask;
    std::string text(base::enum_name(mask.kind, kMaskKinds));
    text += mask.window
                ? cat(", window of ", grouped(*mask.window), " keys, the query's own included")
                : ", all positions up to the query's own";
    if (mask.sinks > 0) text += cat(", and the first ", mask.sinks, " positions always");
    out.rows.push_back({cat("attention \"", name, "\""), text});
  }
  out.rows.push_back(
      {"document boundary", "a sequence is one document; nothing is visible across sequences"});
  out.rows.push_back({"sparse pattern", "none"});
  return out;
}

// The finished table, eight values a line.
std::string table_text(const std::vector<float>& table) {
  std::string out;
  for (std::size_t i = 0; i < table.size(); ++i)
    out += cat(i % 8 == 0 ? "\n" : " ", print_json_inline(json_float(table[i])));
  return out;
}

std::string rope_text(const Rope& rope) {
  std::string text =
      cat("rule ", rope.rule, ", base ", number_text(rope.base), ", first ", rope.dims,
          " dimensions of a head, layout ", base::enum_name(rope.layout, kRopeLayouts),
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

ReportSection positions_point(const Contract& contract) {
  ReportSection out{"6. Positions", {{"trained length", grouped(contract.max_positions)}}};
  if (const auto& table = contract.embedding.positions)
    out.rows.push_back(
        {"position table", cat(base::enum_name(table->kind, kPositionTableKinds), ", ",
                               grouped(table->rows), " rows, row = position + ", table->offset)});
  for (const auto& [name, rope] : contract.ropes)
    out.rows.push_back({cat("rope \"", name, "\""), rope_text(rope)});
  for (const auto& [name, op] : contract.ops) {
    if (!op.attention) continue;
    const Attention& a = *op.attention;
    std::string text = a.rope ? cat("rope ", *a.rope, ", ", contract.ropes.at(*a.rope).dims, " of ",
                                    a.d_k, " dimensions")
                              : "no rotation";
    if (a.alibi)
      text += cat("\nALiBi, added ", a.alibi->before_scale ? "before" : "after",
                  " the scale, slopes:", table_text(a.alibi->slopes));
    out.rows.push_back({cat("attention \"", name, "\""), text});
  }
  return out;
}

// Layers that store the same.
struct CacheGroup {
  const Attention* op;
  std::size_t kept;
  std::vector<std::size_t> layers;
};
std::vector<CacheGroup> cache_groups(const Contract& contract) {
  std::vector<CacheGroup> groups;
  for (const CacheOwner& owner : cache_owners(contract)) {
    const auto same = [&](const CacheGroup& group) {
      return group.op == owner.op && group.kept == owner.kept;
    };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end())
      group = groups.insert(groups.end(), CacheGroup{owner.op, owner.kept, {}});
    group->layers.push_back(owner.layer);
  }
  return groups;
}

ReportSection cache_point(const Contract& contract) {
  ReportSection out{"7. Cache", {}};
  out.rows.push_back({"stored", "K and V of every KV head, as after rotation and QK-norm"});
  for (const CacheGroup& group : cache_groups(contract)) {
    const Attention& op = *group.op;
    const std::size_t n = group.layers.size();
    std::string text =
        cat(n, " x ", op.n_kv_heads, " x (", op.d_k, " + ", op.d_v,
            ") = ", grouped(n * op.n_kv_heads * (op.d_k + op.d_v)), " values per token");
    if (group.kept < contract.max_positions)
      text += cat(", held for ", grouped(group.kept), " tokens");
    out.rows.push_back({layer_list(group.layers), text});
  }
  out.rows.push_back(
      {"formula", "sum over layers of tokens held x n_kv_heads x (d_k + d_v) x bytes of a value"});
  out.rows.push_back({"values per token", grouped(cache_values_per_token(contract))});
  out.rows.push_back(
      {"scales", "int8 (the default) and fp8: one f32 for K and one for V, per token and KV head"});
  for (const CacheCost& cost : cache_costs(contract)) {
    const bool scales = cost.scale_bytes > 0;
    out.rows.push_back(
        {cost.type,
         cat(grouped(cost.payload_bytes),
             scales ? cat(" + scales ", grouped(cost.scale_bytes)) : "",
             " bytes per token; 1,024 tokens: ", grouped(cost.payload_bytes_1024),
             scales ? cat(" + scales ", grouped(cost.scale_bytes_1024)) : "", " bytes")});
  }
  return out;
}

ReportSection output_point(const Contract& contract) {
  const Counts& counts = contract.counts;
  const std::uint64_t formula = parameters_by_formula(contract);
  const std::string tensors = counts.parameters_in_tensors == 0 ? "not counted yet"
                              : counts.parameters_in_tensors == formula
                                  ? cat(grouped(formula), " (equal)")
                                  : cat(grouped(counts.parameters_in_tensors), " (DIFFERENT)");
  return {"8. Output and size",
          {{"final norm", contract.decoder->final_norm.value_or("none")},
           {"input scale", number_text(contract.head.in_scale)},
           {"logit scale", number_text(contract.head.logit_scale)},
           {"logit soft-cap", contract.head.softcap ? number_text(*contract.head.softcap) : "none"},
           {"parameters by formula", grouped(formula)},
           {"parameters in tensors", tensors}}};
}

std::string id_text(const std::optional<std::int32_t>& id) {
  return id ? cat(*id) : "none";
}

ReportSection text_section(const Contract& contract) {
  const Tokens& tokens = contract.tokens;
  std::string eos;
  for (const std::int32_t id : tokens.eos) eos += cat(eos.empty() ? "" : " ", id);
  const ChatDescription& chat = contract.chat;
  return {"Text",
          {{"tokenizer", contract.tokenizer.model},
           {"added tokens", grouped(contract.tokenizer.added.size())},
           {"bos", cat(id_text(tokens.bos), tokens.add_bos ? ", added" : ", not added")},
           {"eos", cat(eos.empty() ? "none" : eos, tokens.add_eos ? ", added" : ", not added")},
           {"chat template", chat.jinja.empty() && chat.builtin.empty() ? "none"
                             : chat.builtin.empty()                     ? "jinja"
                                                    : cat("built-in ", chat.builtin)}}};
}

}  // namespace

std::vector<ReportSection> report_points(const Contract& contract) {
  return {embedding_point(contract), blocks_point(contract), residual_point(contract),
          attention_point(contract), mask_point(contract),   positions_point(contract),
          cache_point(contract),     output_point(contract), text_section(contract)};
}

}  // namespace quern::contract
