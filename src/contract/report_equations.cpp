// The equations of the ends, the blocks and the norms.
#include "base/strings.hpp"
#include "contract/report.hpp"
#include "contract/report_names.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::cat;

namespace {

std::string scaled(double factor, const std::string& term) {
  return factor == 1 ? term : cat(number_text(factor), " * ", term);
}

// out_scale * norm_out(op(in_scale * norm_in(input)))
std::string branch_term(const EquationNames& names, const Branch& branch,
                        const std::string& branch_input) {
  std::string term = applied(names.op(branch.op), branch_input);
  if (branch.norm_out) term = applied(names.norm(*branch.norm_out), term);
  return scaled(branch.out_scale, term);
}
std::string branch_input(const EquationNames& names, const Branch& branch,
                         const std::string& stream) {
  return scaled(branch.in_scale,
                branch.norm_in ? applied(names.norm(*branch.norm_in), stream) : stream);
}

std::string sequential_equation(const EquationNames& names, const Block& block) {
  static const char* const kStreams[] = {"X", "U", "V", "W", "S", "T", "P", "Q"};
  std::string text, stream = kStreams[0];
  for (std::size_t i = 0; i < block.branches.size(); ++i) {
    const Branch& branch = block.branches[i];
    const bool last = i + 1 == block.branches.size();
    const bool normed = block.residual == Residual::normed;
    if (normed) text += cat("N", i, " = ", applied(names.norm(*branch.norm_in), stream), "; ");
    const std::string kept = normed ? cat("N", i) : stream;
    const std::string input = normed ? scaled(branch.in_scale, kept) : branch_input(names, branch, stream);
    std::string sum = cat(scaled(block.skip_scale, kept), " + ", branch_term(names, branch, input));
    if (branch.norm_after) sum = applied(names.norm(*branch.norm_after), sum);
    stream = last ? "Y" : kStreams[i + 1];
    text += cat(stream, " = ", sum, last ? "" : "; ");
  }
  return text;
}

std::string parallel_equation(const EquationNames& names, const Block& block) {
  std::string before, sum = scaled(block.skip_scale, "X"), shared;
  for (std::size_t i = 0; i < block.branches.size(); ++i) {
    const Branch& branch = block.branches[i];
    const bool shares = branch.norm_in == kSharedNorm;
    const bool shared_next =
        i + 1 < block.branches.size() && block.branches[i + 1].norm_in == kSharedNorm;
    std::string input = shares ? shared : branch_input(names, branch, "X");
    if (!shares && shared_next) {
      shared = cat("N", i);
      before += cat(shared, " = ", input, "; ");
      input = shared;
    }
    sum += cat(" + ", branch_term(names, branch, input));
  }
  return cat(before, "Y = ", sum);
}

std::string norm_equation(const Norm& norm) {
  const std::string eps = number_text(norm.eps);
  std::string text = norm.kind == NormKind::rms_norm
                         ? cat("x / sqrt(mean(x^2) + ", eps, ")")
                         : cat("(x - mean(x)) / sqrt(var(x) + ", eps, ")");
  if (norm.weight)
    text +=
        norm.weight_offset == 0 ? " * w" : cat(" * (w + ", number_text(norm.weight_offset), ")");
  return text + (norm.bias ? " + b" : "");
}

std::string embedding_equation(const EquationNames& names, const Embedding& embedding) {
  std::string text = scaled(embedding.scale, "E[token]");
  if (embedding.token_types > 0) text += " + T[type]";
  std::string position;
  if (embedding.positions)
    position = embedding.positions->offset == 0
                   ? " + P[position]"
                   : cat(" + P[position + ", embedding.positions->offset, "]");
  const bool last = embedding.positions && embedding.positions->after_project;
  if (!last) text += position;
  if (embedding.norm) text = applied(names.norm(*embedding.norm), text);
  if (embedding.project_in)
    text = cat("Wp ", embedding.norm ? text : cat("(", text, ")"),
               embedding.project_bias ? " + bp" : "");
  if (last) text += position;
  return cat("X_0 = ", text);
}

std::string pooled(const std::optional<Pool>& pool, const std::string& term) {
  if (!pool) return term;
  const std::string word(base::enum_name(*pool, kPools));
  return applied(word + "_of_tokens", term);
}

std::string head_equation(const EquationNames& names, const Contract& contract) {
  const Head& head = contract.head;
  const auto& final_norm = output_stack(contract).final_norm;
  std::string text =
      pooled(head.pool, final_norm ? applied(names.norm(*final_norm), "X_n") : "X_n");
  if (head.kind == HeadKind::none) return cat("hidden = ", text);
  if (const auto& transform = head.transform) {
    text = cat("Wt ", text, transform->bias ? " + bt" : "");
    if (transform->activation)
      text = applied(std::string(base::enum_name(*transform->activation, kActivations)), text);
    if (transform->norm) text = applied(names.norm(*transform->norm), text);
    if (!transform->activation && !transform->norm) text = cat("(", text, ")");
  }
  text = cat(head.tied ? "E " : "Whead ", scaled(head.in_scale, text), head.bias ? " + bhead" : "");
  if (head.logit_scale != 1) text = cat(number_text(head.logit_scale), " * (", text, ")");
  if (head.softcap)
    text =
        cat(number_text(*head.softcap), " * tanh((", text, ") / ", number_text(*head.softcap), ")");
  return cat("logits = ", text);
}

void add_stack_rows(const EquationNames& names, const Contract& contract, const NamedStack& named,
                    std::vector<ReportRow>& rows) {
  const bool own = named.stack->embedding.has_value();
  rows.push_back(
      {named.prefix + "input",
       embedding_equation(names, own ? named.stack->embedding->embedding : contract.embedding)});
  for (const LayerRun& run : layers_by_block(contract, *named.stack)) {
    const Block& block = contract.blocks.at(run.block_name);
    rows.push_back({named.prefix + layer_list(run.layers), block.residual == Residual::parallel
                                                               ? parallel_equation(names, block)
                                                               : sequential_equation(names, block)});
  }
  if (named.stack != &output_stack(contract))
    rows.push_back(
        {named.prefix + "output",
         cat("Z = ", named.stack->final_norm ? applied(names.norm(*named.stack->final_norm), "X_n")
                                             : "X_n")});
}

}  // namespace

std::vector<ReportRow> report_equations(const Contract& contract) {
  const EquationNames names(contract);
  std::vector<ReportRow> rows;
  for (const NamedStack& named : stacks_of(contract)) add_stack_rows(names, contract, named, rows);
  rows.push_back({"output", head_equation(names, contract)});
  for (const auto& [name, op] : contract.ops)
    rows.push_back({names.op(name) + "(z)", op_equation(names, op)});
  for (const auto& [name, norm] : contract.norms)
    rows.push_back({names.norm(name) + "(x)", norm_equation(norm)});
  return rows;
}

}  // namespace quern::contract
