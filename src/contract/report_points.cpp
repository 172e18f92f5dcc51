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
                                           base::enum_name(a.qk_norm->over, kQkNormOver))
                                     : "none");
    text += cat(", soft-cap: ", a.softcap ? number_text(*a.softcap) : "none");
    text += cat(", sink logits: ", a.sink_logits ? "one per head" : "none");
    if (a.kv_from) text += cat("\nreads the keys and values of layer ", *a.kv_from);
    out.rows.push_back({cat("attention \"", name, "\""), text});
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
