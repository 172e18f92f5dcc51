// Order matters: bounds first, then names, then rules that follow names and multiply numbers.
#include "contract/json.hpp"
#include "contract/rules.hpp"

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

}  // namespace

void validate(const Contract& contract, std::string_view where) {
  const Rules rules(contract, where);
  check_widths(rules);
  check_norms(rules);
  check_embeddings(rules);
  check_ropes(rules);
  check_ops(rules);
  check_blocks(rules);
  check_stacks(rules);
  check_head(rules);
  check_size(rules);
  check_tokens(rules);
  check_generation(rules);
  check_tokenizer(rules);
}

}  // namespace quern::contract
