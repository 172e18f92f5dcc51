#include "contract/document.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::enum_name;
using base::Json;

namespace {

Json qk_norm_document(const QkNorm& qk_norm) {
  return {{"norm", qk_norm.norm}, {"over", enum_name(qk_norm.over, kQkNormOver)}};
}

Json mask_document(const Mask& mask) {
  return {{"kind", enum_name(mask.kind, kMaskKinds)},
          {"window", optional_document(mask.window)},
          {"sinks", mask.sinks}};
}

Json alibi_document(const Alibi& alibi) {
  return {{"slopes", floats_document(alibi.slopes)},
          {"before_scale", alibi.before_scale},
          {"round", alibi.round ? Json(enum_name(*alibi.round, kBiasRounds)) : Json(nullptr)}};
}

Json relative_bias_document(const RelativeBias& bias) {
  return {{"bidirectional", bias.bidirectional},
          {"starts", Json(bias.starts)},
          {"per_layer", bias.per_layer}};
}

Json indexer_document(const std::optional<Indexer>& indexer) {
  if (!indexer) return nullptr;
  return {{"n_heads", indexer->n_heads}, {"d_k", indexer->d_k},
          {"top_k", indexer->top_k},     {"scale", indexer->scale},
          {"k_norm", indexer->k_norm},   {"rope", optional_document(indexer->rope)}};
}

}  // namespace

void add_attention(const Attention& op, Json& out) {
  out["source"] = enum_name(op.source, kAttentionSources);
  out["n_heads"] = op.n_heads;
  out["n_kv_heads"] = op.n_kv_heads;
  out["d_k"] = op.d_k;
  out["d_v"] = op.d_v;
  out["scale"] = op.scale;
  out["bias"] = {{"q", op.bias_q}, {"k", op.bias_k}, {"v", op.bias_v}, {"o", op.bias_o}};
  out["qk_norm"] = op.qk_norm ? qk_norm_document(*op.qk_norm) : Json(nullptr);
  out["rope"] = optional_document(op.rope);
  out["mask"] = mask_document(op.mask);
  out["softcap"] = optional_document(op.softcap);
  out["alibi"] = op.alibi ? alibi_document(*op.alibi) : Json(nullptr);
  out["relative_bias"] =
      op.relative_bias ? relative_bias_document(*op.relative_bias) : Json(nullptr);
  out["clip_qkv"] = optional_document(op.clip_qkv);
  out["sink_logits"] = op.sink_logits;
  out["kv_from"] = optional_document(op.kv_from);
}

void add_mla(const Mla& op, Json& out) {
  out["n_heads"] = op.n_heads;
  out["q_rank"] = optional_document(op.q_rank);
  out["kv_rank"] = op.kv_rank;
  out["d_nope"] = op.d_nope;
  out["d_rope"] = op.d_rope;
  out["d_v"] = op.d_v;
  out["scale"] = op.scale;
  out["bias"] = {{"a", op.bias_a}, {"o", op.bias_o}};
  out["q_norm"] = optional_document(op.q_norm);
  out["kv_norm"] = op.kv_norm;
  out["rope"] = op.rope;
  out["mask"] = mask_document(op.mask);
  out["indexer"] = indexer_document(op.indexer);
}

void add_nsa(const Nsa& op, Json& out) {
  out["n_heads"] = op.n_heads;
  out["n_kv_heads"] = op.n_kv_heads;
  out["d_k"] = op.d_k;
  out["d_v"] = op.d_v;
  out["scale"] = op.scale;
  out["rope"] = optional_document(op.rope);
  out["compress_block"] = op.compress_block;
  out["compress_stride"] = op.compress_stride;
  out["compress_hidden"] = op.compress_hidden;
  out["select_block"] = op.select_block;
  out["n_selected"] = op.n_selected;
  out["n_initial"] = op.n_initial;
  out["n_local"] = op.n_local;
  out["window"] = op.window;
}

}  // namespace quern::contract
