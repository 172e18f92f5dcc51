// The equation of each kind of op, as text.
#include "base/strings.hpp"
#include "contract/report.hpp"
#include "contract/report_names.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::cat;

namespace {

std::string linear(std::string_view name, std::string_view input, bool bias) {
  return bias ? cat("W", name, " ", input, " + b", name) : cat("W", name, " ", input);
}

// Scores of query i over key j, with everything that changes them.
std::string score_equation(const Attention& op) {
  const std::string factor = op.scale == 1 ? "" : cat(number_text(op.scale), " * ");
  const bool rounded = op.alibi && op.alibi->round;
  const std::string bias = rounded ? "bf16(slope_h * bf16(j))" : "slope_h * j";
  std::string score = factor + "q_i k_j";
  if (op.alibi && op.alibi->before_scale) score = cat(factor, "(q_i k_j + ", bias, ")");
  if (op.softcap) {
    const std::string cap = number_text(*op.softcap);
    score = cat(cap, " * tanh((", score, ") / ", cap, ")");
  }
  if (op.alibi && !op.alibi->before_scale) score += " + " + bias;
  if (op.relative_bias) score += " + B[bucket(j - i), h]";
  return cat("s_ij = ", score, " where j is visible to i, else -inf");
}

std::string attention_equation(const EquationNames& names, const Attention& op) {
  const auto clipped = [&](std::string term) {
    return op.clip_qkv ? cat("clip(", term, ", ", number_text(*op.clip_qkv), ")") : term;
  };
  const auto finished = [&](std::string term) {
    term = clipped(term);
    if (op.qk_norm) term = applied(names.norm(op.qk_norm->norm), term);
    return op.rope ? applied("RoPE", term) : term;
  };
  const char* input = op.source == AttentionSource::encoder ? "Z" : "z";
  std::string text = cat("q = ", finished(linear("q", "z", op.bias_q)));
  if (op.kv_from)
    text += cat("; k, v = cache of layer ", *op.kv_from);
  else
    text += cat("; k = ", finished(linear("k", input, op.bias_k)),
                "; v = ", clipped(linear("v", input, op.bias_v)));
  text += cat("\n", score_equation(op));
  text += cat("\np_i = softmax_j(s_ij", op.sink_logits ? " and sink_h, dropped after)" : ")");
  return text + cat("; result = Wo concat_h(sum_j p_ij v_j)", op.bias_o ? " + bo" : "");
}

std::string indexer_equation(const EquationNames& names, const Indexer& op) {
  const auto placed = [&](std::string term) { return op.rope ? applied("RoPE", term) : term; };
  return cat("\nindexer: kI = ", placed(applied(names.norm(op.k_norm), "Wk z")),
             "; qI_g = ", placed("(Wq cq)_g"), "; w = Ww z", "\nI_ij = sum_g w_gi * relu(",
             number_text(op.scale), " * qI_gi kI_j); visible: the ", op.top_k,
             " keys with the largest I_ij");
}

std::string mla_equation(const EquationNames& names, const Mla& op) {
  std::string text;
  if (op.q_rank) {
    const std::string latent = linear("qa", "z", op.bias_a);
    text = cat("cq = ", op.q_norm ? applied(names.norm(*op.q_norm), latent) : latent,
               "; [qn | qr]_h = (Wqb cq)_h");
  } else {
    text = "[qn | qr]_h = (Wq z)_h";
  }
  text += cat("; [c' | k'] = ", linear("kva", "z", op.bias_a),
              "; c = ", applied(names.norm(op.kv_norm), "c'"), "; kr = RoPE(k')",
              "\nk_h = [Wkb_h c | kr]; v_h = Wvb_h c", "\ns_ij = ", number_text(op.scale),
              " * [qn | RoPE(qr)]_hi k_hj where j is visible to i, else -inf");
  if (op.indexer) text += indexer_equation(names, *op.indexer);
  return text + cat("\np_i = softmax_j(s_ij); result = Wo concat_h(sum_j p_ij v_hj)",
                    op.bias_o ? " + bo" : "");
}

std::string nsa_equation(const Nsa& op) {
  const std::string rope = op.rope ? "RoPE" : "";
  return cat("q = ", rope.empty() ? "Wq z" : "RoPE(Wq z)",
             "; for each branch b: k = ", rope.empty() ? "Wk_b z" : "RoPE(Wk_b z)",
             ", v = Wv_b z, A_b = softmax_j(", number_text(op.scale), " * q_i k_j) v_j over",
             "\nA_c: rows Wout relu(Win flat(k + position) + bin) + bout of ", op.compress_block,
             " keys, one every ", op.compress_stride, "\nA_s: the ", op.n_selected, " blocks of ",
             op.select_block, " keys with the largest probability in A_c (the first ", op.n_initial,
             " and the newest ", op.n_local, " always)", "\nA_w: the last ", op.window,
             " keys\nresult = Wo concat_h(sum_b sigmoid(Wg z + bg)_bh * A_bh)");
}

std::string ffn_equation(const Ffn& op) {
  const std::string activation(base::enum_name(op.activation, kActivations));
  std::string gate = linear("gate", "z", op.bias_in), up = linear("up", "z", op.bias_in);
  if (op.clamp) {
    gate = cat("min(", gate, ", ", number_text(*op.clamp), ")");
    up = cat("clip(", up, ", ", number_text(*op.clamp), ")");
  }
  if (op.up_offset != 0) up += cat(" + ", number_text(op.up_offset));
  const std::string inner =
      op.gated ? cat(activation, "(", gate, ") * (", up, ")") : cat(activation, "(", up, ")");
  return cat("Wdown (", inner, ")", op.bias_out ? " + bdown" : "");
}

std::string choice_text(const Moe& op) {
  const Router& router = op.router;
  std::string text = cat("the ", op.top_k, " of ", op.n_experts, " experts with the largest ",
                         router.select_bias ? "score + select_bias" : "score");
  if (router.n_groups > 1)
    text += cat(", from the ", router.top_groups, " of ", router.n_groups, " groups with the best ",
                router.group_score == GroupScore::max ? "score" : "two scores added");
  return text;
}

std::string moe_equation(const Moe& op) {
  const Router& router = op.router;
  const bool late = router.score == RouterScore::softmax_selected;
  std::string weight = late ? "softmax over the chosen scores" : "score";
  if (router.normalize)
    weight +=
        cat(" / (sum of the chosen",
            router.normalize_eps > 0 ? cat(" + ", number_text(router.normalize_eps)) : "", ")");
  if (router.scale != 1) weight = cat(number_text(router.scale), " * ", weight);
  const std::string logits = linear("r", "z", router.bias);
  std::string text = cat(
      "score = ",
      late ? logits : applied(std::string(base::enum_name(router.score, kRouterScores)), logits),
      "; chosen: ", choice_text(op), "; weight = ", weight,
      "\nresult = sum over the chosen of weight_e * expert_e(z)");
  if (op.shared) text += op.shared->gate ? " + sigmoid(ws z) * shared(z)" : " + shared(z)";
  text += cat("\nexpert(z) = ", ffn_equation(op.expert));
  if (op.shared) text += cat("\nshared(z) = ", ffn_equation(op.shared->ffn));
  return text;
}

}  // namespace

std::string op_equation(const EquationNames& names, const Op& op) {
  switch (op.kind) {
    case OpKind::attention:
      return attention_equation(names, *op.attention);
    case OpKind::mla:
      return mla_equation(names, *op.mla);
    case OpKind::nsa:
      return nsa_equation(*op.nsa);
    case OpKind::ffn:
      return ffn_equation(*op.ffn);
    case OpKind::moe:
      return moe_equation(*op.moe);
  }
  return {};
}

}  // namespace quern::contract
