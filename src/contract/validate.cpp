// Order matters: bounds first, then names, then rules that follow names and multiply numbers.
#include "contract/json.hpp"
#include "contract/rules.hpp"
#include "contract/tensors.hpp"

namespace quern::contract {

namespace {

void check_widths(const Rules& rules) {
  const Contract& contract = rules.contract;
  rules.label("name", contract.name);
  rules.label("family", contract.family);
  rules.range("vocab_size", contract.vocab_size, 1, kMaxVocab);
  rules.range("d_model", contract.d_model, 1, kMaxWidth);
  rules.range("max_positions", contract.max_positions, 1, kMaxPositions);
}

// Words of the contract's language that no part of this version runs. One place, so that the
// version that brings a mechanism deletes its line here.
void check_runs(const Rules& rules) {
  const Contract& contract = rules.contract;
  const auto later = [&](bool used, std::string_view path, std::string_view what) {
    if (used) rules.fail(path, base::cat("this version of quern does not run ", what));
  };
  later(contract.kind == ModelKind::encoder, "kind", "encoders");
  later(contract.kind == ModelKind::encoder_decoder, "kind", "encoder-decoder models");
  later(contract.encoder.has_value(), "encoder", "encoder stacks");
  later(contract.embedding.token_types != 0, "embedding.token_types", "token types (only 0 here)");
  later(contract.embedding.project_in, "embedding.project_in",
        "projected embeddings (only false here)");
  later(contract.head.kind == HeadKind::none, "head.kind", "models without a language-model head");
}

void check_embedding(const Rules& rules) {
  const Embedding& embedding = rules.contract.embedding;
  rules.range("embedding.d_embed", embedding.d_embed, 1, kMaxWidth);
  rules.factor("embedding.scale", embedding.scale);
  rules.range("embedding.token_types", embedding.token_types, 0, kMaxTokenTypes);
  rules.norm_resolves("embedding.norm", embedding.norm);
  rules.require(embedding.project_in || embedding.d_embed == rules.contract.d_model,
                "embedding.d_embed",
                base::cat("must equal d_model (", rules.contract.d_model, ") unless project_in"));
  if (!embedding.positions) return;
  rules.range("embedding.positions.rows", embedding.positions->rows, 1, 2 * kMaxPositions);
  rules.range("embedding.positions.offset", embedding.positions->offset, 0, kMaxPositions);
  const std::size_t needed = rules.contract.max_positions + embedding.positions->offset;
  if (embedding.positions->rows < needed)
    rules.fail("embedding.positions.rows", "the table has no row for the last position",
               base::cat(embedding.positions->rows), base::cat("at least ", needed));
}

void check_head(const Rules& rules) {
  const Head& head = rules.contract.head;
  rules.factor("head.in_scale", head.in_scale);
  rules.factor("head.logit_scale", head.logit_scale);
  if (head.softcap) rules.positive("head.softcap", *head.softcap);
  rules.require(!head.tied || rules.contract.embedding.d_embed == rules.contract.d_model,
                "head.tied", "a tied head needs d_embed = d_model");
  rules.require(head.kind == HeadKind::lm || (!head.tied && !head.bias), "head.kind",
                "a model without a head has neither a tied head nor a head bias");
}

// 0 = not counted yet (before the converter has seen the tensors).
void check_counts(const Rules& rules) {
  const std::uint64_t formula = parameters_by_formula(rules.contract);
  const auto check = [&](std::string_view path, std::uint64_t count) {
    if (count != 0 && count != formula)
      rules.fail(path, "not what the architecture adds up to", base::cat(count),
                 base::cat(formula));
  };
  check("counts.parameters_by_formula", rules.contract.counts.parameters_by_formula);
  check("counts.parameters_in_tensors", rules.contract.counts.parameters_in_tensors);
}

}  // namespace

void validate(const Contract& contract, std::string_view where) {
  const Rules rules(contract, where);
  check_runs(rules);
  check_widths(rules);
  check_norms(rules);
  check_embedding(rules);
  check_ropes(rules);
  check_ops(rules);
  check_blocks(rules);
  check_decoder(rules);
  check_head(rules);
  check_tokens(rules);
  check_generation(rules);
  check_tokenizer(rules);
  check_counts(rules);
}

}  // namespace quern::contract
