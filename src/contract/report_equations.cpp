#include <map>

#include "base/strings.hpp"
#include "contract/report.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::cat;

namespace {

// Short names of norms and ops: RMS, LN, Attn, FFN; with the entry's name when there are several.
class Names {
 public:
  explicit Names(const Contract& contract) : contract_(contract) {
    for (const auto& [name, norm] : contract.norms) ++norms_[norm.kind];
    for (const auto& [name, op] : contract.ops) ++ops_[op.kind];
  }
  std::string norm(const std::string& name) const {
    const NormKind kind = contract_.norms.at(name).kind;
    const std::string word = kind == NormKind::rms_norm ? "RMS" : "LN";
    return norms_.at(kind) > 1 ? cat(word, "_", name) : word;
  }
  std::string op(const std::string& name) const {
    const OpKind kind = contract_.ops.at(name).kind;
    const std::string word = kind == OpKind::attention ? "Attn" : "FFN";
    return ops_.at(kind) > 1 ? cat(word, "_", name) : word;
  }

 private:
  const Contract& contract_;
  std::map<NormKind, int> norms_;
  std::map<OpKind, int> ops_;
};

std::string scaled(double factor, const std::string& term) {
  return factor == 1 ? term : cat(number_text(factor), " * ", term);
}
std::string applied(const std::string& function, const std::string& argument) {
  return cat(function, "(", argument, ")");
}

// out_scale * norm_out(op(in_scale * norm_in(input)))
std::string branch_term(const Names& names, const Branch& branch, const std::string& branch_input) {
  std::string term = applied(names.op(branch.op), branch_input);
  if (branch.norm_out) term = applied(names.norm(*branch.norm_out), term);
  return scaled(branch.out_scale, term);
}
std::string branch_input(const Names& names, const Branch& branch, const std::string& stream) {
  return scaled(branch.in_scale,
                branch.norm_in ? applied(names.norm(*branch.norm_in), stream) : stream);
}

std::string sequential_equation(const Names& names, const Block& block) {
  static const char* const kStreams[] = {"X", "U", "V", "W", "S", "T", "P", "Q"};
  std::string text, stream = kStreams[0];
  for (std::size_t i = 0; i < block.branches.size(); ++i) {
    const Branch& branch = block.branches[i];
    const bool last = i + 1 == block.branches.size();
    std::string sum = cat(scaled(block.skip_scale, stream), " + ",
                          branch_term(names, branch, branch_input(names, branch, stream)));
    if (branch.norm_after) sum = applied(names.norm(*branch.norm_after), sum);
    stream = last ? "Y" : kStreams[i + 1];
    text += cat(stream, " = ", sum, last ? "" : "; ");
  }
  return text;
}

std::string parallel_equation(const Names& names, const Block& block) {
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

std::string attention_equation(const Names& names, const Attention& op) {
  const auto linear = [](const char* weight, const char* bias, bool has_bias) {
    return has_bias ? cat(weight, " z + ", bias) : cat(weight, " z");
  };
  const auto finished = [&](std::string term) {
    if (op.qk_norm) term = applied(names.norm(op.qk_norm->norm), term);
    return op.rope ? applied("RoPE", term) : term;
  };
  std::string text = cat("q = ", finished(linear("Wq", "bq", op.bias_q)));
  if (op.kv_from)
    text += cat("; k, v = cache of layer ", *op.kv_from);
  else
    text += cat("; k = ", finished(linear("Wk", "bk", op.bias_k)),
                "; v = ", linear("Wv", "bv", op.bias_v));
  std::string score = scaled(op.scale, "q_i k_j");
  if (op.alibi)
    score = op.alibi->before_scale ? cat(number_text(op.scale), " * (q_i k_j + slope_h * j)")
                                   : cat(score, " + slope_h * j");
  if (op.softcap) {
    const std::string cap = number_text(*op.softcap);
    score = cat(cap, " * tanh((", score, ") / ", cap, ")");
  }
  text += cat("\ns_ij = ", score, " where j is visible to i, else -inf");
  text += cat("\np_i = softmax_j(s_ij", op.sink_logits ? " and sink_h, dropped after)" : ")");
  text += cat("; result = Wo concat_h(sum_j p_ij v_j)", op.bias_o ? " + bo" : "");
  return text;
}

std::string ffn_equation(const Ffn& op) {
  const std::string activation(base::enum_name(op.activation, kActivations));
  const std::string in_gate = op.bias_in ? "Wgate z + bgate" : "Wgate z";
  const std::string in_up = op.bias_in ? "Wup z + bup" : "Wup z";
  const std::string inner = op.gated ? cat(activation, "(", in_gate, ") * (", in_up, ")")
                                     : cat(activation, "(", in_up, ")");
  return cat("Wdown (", inner, ")", op.bias_out ? " + bdown" : "");
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

std::string embedding_equation(const Names& names, const Embedding& embedding) {
  std::string text = scaled(embedding.scale, "E[token]");
  if (embedding.positions)
    text += embedding.positions->offset == 0
                ? " + P[position]"
                : cat(" + P[position + ", embedding.positions->offset, "]");
  return cat("X_0 = ", embedding.norm ? applied(names.norm(*embedding.norm), text) : text);
}

std::string head_equation(const Names& names, const Contract& contract) {
  const Head& head = contract.head;
  const auto& final_norm = contract.decoder->final_norm;
  std::string text =
      scaled(head.in_scale, final_norm ? applied(names.norm(*final_norm), "X_n") : "X_n");
  text = cat(head.tied ? "E " : "Whead ", text, head.bias ? " + bhead" : "");
  if (head.logit_scale != 1) text = cat(number_text(head.logit_scale), " * (", text, ")");
  if (head.softcap)
    text =
        cat(number_text(*head.softcap), " * tanh((", text, ") / ", number_text(*head.softcap), ")");
  return cat("logits = ", text);
}

}  // namespace

std::vector<ReportRow> report_equations(const Contract& contract) {
  const Names names(contract);
  std::vector<ReportRow> rows = {{"input", embedding_equation(names, contract.embedding)}};
  for (const LayerRun& run : layers_by_block(contract)) {
    const Block& block = contract.blocks.at(run.block_name);
    rows.push_back({layer_list(run.layers), block.residual == Residual::sequential
                                                ? sequential_equation(names, block)
                                                : parallel_equation(names, block)});
  }
  if (contract.head.kind == HeadKind::lm)
    rows.push_back({"output", head_equation(names, contract)});
  for (const auto& [name, op] : contract.ops)
    rows.push_back({names.op(name) + "(z)", op.attention ? attention_equation(names, *op.attention)
                                                         : ffn_equation(*op.ffn)});
  for (const auto& [name, norm] : contract.norms)
    rows.push_back({names.norm(name) + "(x)", norm_equation(norm)});
  return rows;
}

}  // namespace quern::contract
