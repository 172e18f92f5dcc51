// Point 4 of the report: heads, widths, biases and scale of every kind of attention.
#include <cmath>

#include "base/strings.hpp"
#include "contract/report.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::cat;
using base::grouped;

namespace {

std::string head_mapping(std::size_t n_heads, std::size_t n_kv_heads) {
  const std::size_t share = n_heads / n_kv_heads;
  const char* kind = share == 1 ? "multi-head" : n_kv_heads == 1 ? "multi-query" : "grouped";
  return cat(kind, ": query head h reads KV head ",
             share == 1        ? "h"
             : n_kv_heads == 1 ? "0"
                               : cat("floor(h / ", share, ")"));
}

std::string scale_text(double scale, std::size_t d_k) {
  const double usual = 1 / std::sqrt(static_cast<double>(d_k));
  return cat("scale ", number_text(scale),
             std::fabs(scale - usual) <= 1e-7 * usual ? " (1/sqrt(d_k))" : "");
}

std::string attention_text(const Attention& a) {
  std::string text =
      a.source == AttentionSource::encoder
          ? "cross-attention: queries of the decoder, keys and values of the encoder\n"
          : "";
  text += cat(a.n_heads, " query heads, ", a.n_kv_heads, " KV heads, d_k ", a.d_k, ", d_v ", a.d_v);
  text += cat("\n", head_mapping(a.n_heads, a.n_kv_heads), "\n", scale_text(a.scale, a.d_k));
  text += cat("\nbiases: ",
              word_list({{"q", a.bias_q}, {"k", a.bias_k}, {"v", a.bias_v}, {"o", a.bias_o}}));
  text += cat("\nQK-norm: ", a.qk_norm ? cat(a.qk_norm->norm, " over ",
                                             base::enum_name(a.qk_norm->over, kQkNormOver))
                                       : "none");
  text += cat(", soft-cap: ", a.softcap ? number_text(*a.softcap) : "none");
  text += cat(", sink logits: ", a.sink_logits ? "one per head" : "none");
  if (a.clip_qkv) text += cat(", q, k, v clamped to +-", number_text(*a.clip_qkv));
  if (a.kv_from) text += cat("\nreads the keys and values of layer ", *a.kv_from);
  return text;
}

std::string mla_text(const Mla& m) {
  std::string text =
      cat("latent attention: ", m.n_heads, " heads, key ", m.d_nope, " + ", m.d_rope,
          " (the rotated part is shared by all heads), value ", m.d_v, "\ncached latent ",
          m.kv_rank, " (norm ", m.kv_norm, "), query latent ",
          m.q_rank ? cat(*m.q_rank, " (norm ", m.q_norm.value_or("none"), ")") : "none");
  text += cat("\nevery head has keys and values of its own, made from the one cached row", "\n",
              scale_text(m.scale, m.d_nope + m.d_rope),
              "\nbiases: ", word_list({{"down projections", m.bias_a}, {"o", m.bias_o}}),
              "\nQK-norm: none, soft-cap: none, sink logits: none");
  if (const auto& i = m.indexer)
    text += cat("\nindexer: ", i->n_heads, " query heads and one key of ", i->d_k, ", scale ",
                number_text(i->scale), ", norm of the key ", i->k_norm);
  return text;
}

std::string nsa_text(const Nsa& n) {
  return cat("native sparse attention: ", n.n_heads, " query heads, ", n.n_kv_heads,
             " KV heads in each of three branches, d_k ", n.d_k, ", d_v ", n.d_v, "\n",
             head_mapping(n.n_heads, n.n_kv_heads), "\n", scale_text(n.scale, n.d_k),
             "\nbiases: gates and the compression (hidden width ", grouped(n.compress_hidden),
             ")\nQK-norm: none, soft-cap: none, sink logits: none");
}

}  // namespace

ReportSection attention_point(const Contract& contract) {
  ReportSection out{"4. Attention", {}};
  for (const auto& [name, op] : contract.ops) {
    if (op.attention)
      out.rows.push_back({entry_label("attention", name), attention_text(*op.attention)});
    if (op.mla) out.rows.push_back({entry_label("attention", name), mla_text(*op.mla)});
    if (op.nsa) out.rows.push_back({entry_label("attention", name), nsa_text(*op.nsa)});
  }
  return out;
}

}  // namespace quern::contract
