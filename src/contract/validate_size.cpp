// What the whole architecture adds up to, before any list of it is built.
#include "contract/rules.hpp"
#include "contract/tensors.hpp"

namespace quern::contract {

using base::cat;

namespace {

// At least the tensors of one branch: its op (every attention has fewer than 32) and three norms.
std::uint64_t tensors_at_most(const Op& op) {
  constexpr std::uint64_t kOfFfn = 6, kOfNorms = 6, kOfAttention = 32;
  if (op.ffn) return kOfFfn + kOfNorms;
  if (op.moe) return (op.moe->n_experts + 2) * kOfFfn + kOfNorms;
  return kOfAttention + kOfNorms;
}

std::uint64_t tensors_at_most(const Contract& contract, const Stack& stack) {
  std::uint64_t count = 0;
  for (const LayerGroup& group : stack.layers)
    for (const std::string& name : group.pattern)
      for (const Branch& branch : contract.blocks.at(name).branches)
        count +=
            (group.share_weights ? 1 : group.repeat) * tensors_at_most(contract.ops.at(branch.op));
  return count;
}

// 0 = not counted yet (before the converter has seen the tensors).
void check_count(const Rules& rules, std::string_view path, std::uint64_t count,
                 std::uint64_t formula) {
  if (count != 0 && count != formula)
    rules.fail(path, "not what the architecture adds up to", cat(count), cat(formula));
}

}  // namespace

void check_size(const Rules& rules) {
  const Contract& contract = rules.contract;
  std::uint64_t tensors = 0;
  for (const auto* stack : {&contract.encoder, &contract.decoder})
    if (*stack) tensors += tensors_at_most(contract, **stack);
  if (tensors > kMaxTensors)
    rules.fail(contract.decoder ? "decoder.layers" : "encoder.layers", "too many tensors",
               cat("up to ", tensors), cat("at most ", kMaxTensors));
  const std::uint64_t formula = parameters_by_formula(contract);
  if (formula > kMaxParameters)
    rules.fail("d_model", "the model has too many parameters", cat(formula),
               cat("at most ", kMaxParameters));
  check_count(rules, "counts.parameters_by_formula", contract.counts.parameters_by_formula,
              formula);
  check_count(rules, "counts.parameters_in_tensors", contract.counts.parameters_in_tensors,
              formula);
}

}  // namespace quern::contract
