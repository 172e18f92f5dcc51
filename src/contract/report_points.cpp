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

std::string word_list(std::initializer_list<std::pair<const char*, bool>> words) {
  std::string out;
  for (const auto& [word, holds] : words)
    if (holds) out += cat(out.empty() ? "" : " ", word);
  return out.empty() ? "none" : out;
}

std::string entry_label(std::string_view kind, std::string_view name) {
  return cat(kind, " \"", name, "\"");
}

namespace {

std::string yes_no(bool value) {
  return value ? "yes" : "no";
}

void add_embedding_rows(const std::string& prefix, const Embedding& embedding,
                        std::size_t vocab_size, std::vector<ReportRow>& rows) {
  rows.push_back({prefix + "embedding", cat("[", vocab_size, ", ", embedding.d_embed, "]")});
  rows.push_back({prefix + "embedding scale", number_text(embedding.scale)});
  rows.push_back({prefix + "embedding norm", embedding.norm.value_or("none")});
  if (embedding.token_types > 0)
    rows.push_back({prefix + "token types", grouped(embedding.token_types)});
  if (embedding.project_in)
    rows.push_back(
        {prefix + "projection", cat("to d_model, bias: ", yes_no(embedding.project_bias))});
}

// "dense to 768, tanh, bias, norm ln"
std::string transform_text(const HeadTransform& transform) {
  std::string text = cat("a layer to width ", transform.d_out);
  if (transform.activation) text += cat(", ", base::enum_name(*transform.activation, kActivations));
  return text +
         cat(", bias: ", yes_no(transform.bias), ", norm: ", transform.norm.value_or("none"));
}

std::string label_names(const std::vector<std::string>& labels) {
  std::string text;
  for (std::size_t i = 0; i < labels.size() && i < 8; ++i)
    text += cat(i == 0 ? "" : ", ", base::printable(labels[i], 40));
  return text + (labels.size() > 8 ? ", ..." : "");
}

void add_head_rows(const Contract& contract, std::vector<ReportRow>& rows) {
  const Head& head = contract.head;
  if (head.kind == HeadKind::none) {
    rows.push_back({"output", cat("[tokens, ", contract.d_model, "], hidden states, no head")});
    return;
  }
  if (head.transform) rows.push_back({"head transform", transform_text(*head.transform)});
  const std::string rows_of = head.pool ? "sequences" : "tokens";
  rows.push_back({"output", cat("[", rows_of, ", ", head_outputs(contract), "]",
                                head.tied ? ", tied to the embedding" : ", a matrix of its own")});
  rows.push_back({"output bias", yes_no(head.bias)});
  if (!has_labels(head.kind)) return;
  rows.push_back({"head", std::string(base::enum_name(head.kind, kHeadKinds))});
  rows.push_back({"labels", label_names(head.labels)});
  rows.push_back({"labels of", head.pool ? cat("a sequence, from its ",
                                               base::enum_name(*head.pool, kPools), " token",
                                               head.pool_pad ? cat(" that is not ", *head.pool_pad) : "")
                                         : "every token"});
}

void add_pooling_row(const Pooling& pooling, std::vector<ReportRow>& rows) {
  std::string text(base::enum_name(pooling.mode, kPools));
  for (const HeadTransform& layer : pooling.dense) text += cat(", ", transform_text(layer));
  text += pooling.normalize ? ", to length 1" : ", length as it is";
  if (pooling.max_tokens) text += cat(", of at most ", grouped(*pooling.max_tokens), " tokens");
  rows.push_back({"embedding of a text", text});
}

ReportSection embedding_point(const Contract& contract) {
  ReportSection out{"1. Vocabulary and ends",
                    {{"kind", std::string(base::enum_name(contract.kind, kModelKinds))},
                     {"vocabulary size", grouped(contract.vocab_size)}}};
  add_embedding_rows("", contract.embedding, contract.vocab_size, out.rows);
  if (contract.encoder && contract.encoder->embedding) {
    const EncoderEmbedding& own = *contract.encoder->embedding;
    out.rows.push_back(
        {"encoder tokens", own.own_tokens ? "a table of its own" : "the same table"});
    add_embedding_rows("encoder ", own.embedding, own.vocab_size, out.rows);
  }
  add_head_rows(contract, out.rows);
  if (contract.pooling) add_pooling_row(*contract.pooling, out.rows);
  return out;
}

// How the inner width follows from d_model, where it does so in a usual way.
std::string width_rule(std::size_t d_ff, std::size_t d_model) {
  const std::size_t two_thirds = 8 * d_model / 3;
  if (d_ff == (two_thirds + 255) / 256 * 256) return "8/3 d_model rounded up to a multiple of 256";
  return cat(
      number_text(std::round(100.0 * static_cast<double>(d_ff) / static_cast<double>(d_model)) /
                  100.0),
      " x d_model");
}

std::string ffn_text(const Ffn& op, std::size_t d_model) {
  std::string text =
      cat(op.gated ? "gated, " : "plain, ", base::enum_name(op.activation, kActivations),
          ", width ", grouped(op.d_ff), " (", width_rule(op.d_ff, d_model),
          "), biases: ", word_list({{"in", op.bias_in}, {"out", op.bias_out}}));
  if (op.clamp) text += cat(", clamped at ", number_text(*op.clamp));
  if (op.up_offset != 0) text += cat(", up + ", number_text(op.up_offset));
  return text;
}

std::string moe_text(const Moe& op, std::size_t d_model) {
  const Router& router = op.router;
  std::string text = cat(op.n_experts, " experts, ", op.top_k, " of them for a token",
                         "\nexpert: ", ffn_text(op.expert, d_model), "\nshared expert: ",
                         op.shared ? cat(ffn_text(op.shared->ffn, d_model),
                                         op.shared->gate ? ", gated by a sigmoid" : "")
                                   : "none");
  text += cat("\nrouter: ", base::enum_name(router.score, kRouterScores),
              ", biases: ", word_list({{"logits", router.bias}, {"choice", router.select_bias}}));
  if (router.n_groups > 1)
    text += cat(", from ", router.top_groups, " of ", router.n_groups, " groups (",
                base::enum_name(router.group_score, kGroupScores), ")");
  return text + cat(", weights ", router.normalize ? "normalized" : "as they are",
                    router.scale == 1 ? "" : cat(", x ", number_text(router.scale)));
}

void add_stack_rows(const Contract& contract, const NamedStack& named,
                    std::vector<ReportRow>& rows) {
  std::size_t n_layers = 0;
  const std::vector<LayerRun> runs = layers_by_block(contract, *named.stack);
  for (const LayerRun& run : runs) n_layers += run.layers.size();
  rows.push_back({named.prefix + "blocks", grouped(n_layers)});
  for (const LayerRun& run : runs)
    rows.push_back({entry_label("block", run.block_name), named.prefix + layer_list(run.layers)});
  for (const LayerGroup& group : named.stack->layers)
    if (group.share_weights && group.repeat > 1)
      rows.push_back(
          {"shared weights", cat(group.pattern.size(), " layers, used ", group.repeat, " times")});
}

ReportSection blocks_point(const Contract& contract) {
  ReportSection out{"2. Blocks and widths", {{"d_model", grouped(contract.d_model)}}};
  for (const NamedStack& named : stacks_of(contract)) add_stack_rows(contract, named, out.rows);
  for (const auto& [name, op] : contract.ops) {
    if (op.ffn) out.rows.push_back({entry_label("ffn", name), ffn_text(*op.ffn, contract.d_model)});
    if (op.moe) out.rows.push_back({entry_label("moe", name), moe_text(*op.moe, contract.d_model)});
  }
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
    out.rows.push_back({entry_label("block", name), text});
  }
  for (const auto& [name, norm] : contract.norms)
    out.rows.push_back(
        {entry_label("norm", name),
         cat(base::enum_name(norm.kind, kNormKinds), ", eps ", number_text(norm.eps), ", sums in ",
             base::enum_name(norm.accumulate, kAccumulates), ", weight: ", yes_no(norm.weight),
             " (offset ", print_json_inline(json_plain_number(norm.weight_offset)),
             "), bias: ", yes_no(norm.bias))});
  return out;
}

std::string active_text(const Contract& contract) {
  const ParameterParts parts = parameter_parts(contract);
  return parts.inactive == 0 ? cat(grouped(parts.total()), " (every parameter serves every token)")
                             : cat(grouped(parts.active()), " (a token uses some of the experts)");
}

ReportSection output_point(const Contract& contract) {
  const Counts& counts = contract.counts;
  const std::uint64_t formula = parameters_by_formula(contract);
  const std::string tensors = counts.parameters_in_tensors == 0 ? "no tensors were read"
                              : counts.parameters_in_tensors == formula
                                  ? cat(grouped(formula), " (equal)")
                                  : cat(grouped(counts.parameters_in_tensors), " (DIFFERENT)");
  return {"8. Output and size",
          {{"final norm", output_stack(contract).final_norm.value_or("none")},
           {"input scale", number_text(contract.head.in_scale)},
           {"logit scale", number_text(contract.head.logit_scale)},
           {"logit soft-cap", contract.head.softcap ? number_text(*contract.head.softcap) : "none"},
           {"parameters by formula", grouped(formula)},
           {"active parameters", active_text(contract)},
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
