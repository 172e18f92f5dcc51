#include "contract/limits.hpp"
#include "contract/read_parts.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::JsonObject;

namespace {

QkNorm read_qk_norm(JsonObject object) {
  QkNorm out{};
  out.norm = object.get_string("norm");
  out.over = object.get_enum("over", kQkNormOver);
  object.finish();
  return out;
}

Mask read_mask(JsonObject object) {
  Mask mask{};
  mask.kind = object.get_enum("kind", kMaskKinds);
  mask.window = read_optional_count(object, "window");
  mask.sinks = read_count(object, "sinks");
  object.finish();
  return mask;
}

Alibi read_alibi(JsonObject object) {
  Alibi alibi{};
  alibi.slopes = read_floats(object, "slopes", kMaxWidth);
  alibi.before_scale = object.get_bool("before_scale");
  alibi.round = read_nullable(object, "round", [&] { return object.get_enum("round", kBiasRounds); });
  object.finish();
  return alibi;
}

RelativeBias read_relative_bias(JsonObject object) {
  RelativeBias out{};
  out.bidirectional = object.get_bool("bidirectional");
  for (const std::int32_t start : read_ids(object, "starts", kMaxBuckets))
    out.starts.push_back(static_cast<std::uint32_t>(start));
  out.per_layer = object.get_bool("per_layer");
  object.finish();
  return out;
}

Indexer read_indexer(JsonObject object) {
  Indexer out{};
  out.n_heads = read_count(object, "n_heads");
  out.d_k = read_count(object, "d_k");
  out.top_k = read_count(object, "top_k");
  out.scale = object.get_double("scale");
  out.k_norm = object.get_string("k_norm");
  out.rope = read_optional_name(object, "rope");
  object.finish();
  return out;
}

}  // namespace

Attention read_attention(JsonObject& object) {
  Attention out{};
  out.source = object.get_enum("source", kAttentionSources);
  out.n_heads = read_count(object, "n_heads");
  out.n_kv_heads = read_count(object, "n_kv_heads");
  out.d_k = read_count(object, "d_k");
  out.d_v = read_count(object, "d_v");
  out.scale = object.get_double("scale");
  JsonObject bias = object.get_object("bias");
  out.bias_q = bias.get_bool("q");
  out.bias_k = bias.get_bool("k");
  out.bias_v = bias.get_bool("v");
  out.bias_o = bias.get_bool("o");
  bias.finish();
  out.qk_norm =
      read_nullable(object, "qk_norm", [&] { return read_qk_norm(object.get_object("qk_norm")); });
  out.rope = read_optional_name(object, "rope");
  out.mask = read_mask(object.get_object("mask"));
  out.softcap = read_optional_number(object, "softcap");
  out.alibi =
      read_nullable(object, "alibi", [&] { return read_alibi(object.get_object("alibi")); });
  out.relative_bias = read_nullable(object, "relative_bias", [&] {
    return read_relative_bias(object.get_object("relative_bias"));
  });
  out.clip_qkv = read_optional_number(object, "clip_qkv");
  out.sink_logits = object.get_bool("sink_logits");
  out.kv_from = read_optional_count(object, "kv_from");
  return out;
}

Mla read_mla(JsonObject& object) {
  Mla out{};
  out.n_heads = read_count(object, "n_heads");
  out.q_rank = read_optional_count(object, "q_rank");
  out.kv_rank = read_count(object, "kv_rank");
  out.d_nope = read_count(object, "d_nope");
  out.d_rope = read_count(object, "d_rope");
  out.d_v = read_count(object, "d_v");
  out.scale = object.get_double("scale");
  JsonObject bias = object.get_object("bias");
  out.bias_a = bias.get_bool("a");
  out.bias_o = bias.get_bool("o");
  bias.finish();
  out.q_norm = read_optional_name(object, "q_norm");
  out.kv_norm = object.get_string("kv_norm");
  out.rope = object.get_string("rope");
  out.mask = read_mask(object.get_object("mask"));
  out.indexer =
      read_nullable(object, "indexer", [&] { return read_indexer(object.get_object("indexer")); });
  return out;
}

Nsa read_nsa(JsonObject& object) {
  Nsa out{};
  out.n_heads = read_count(object, "n_heads");
  out.n_kv_heads = read_count(object, "n_kv_heads");
  out.d_k = read_count(object, "d_k");
  out.d_v = read_count(object, "d_v");
  out.scale = object.get_double("scale");
  out.rope = read_optional_name(object, "rope");
  out.compress_block = read_count(object, "compress_block");
  out.compress_stride = read_count(object, "compress_stride");
  out.compress_hidden = read_count(object, "compress_hidden");
  out.select_block = read_count(object, "select_block");
  out.n_selected = read_count(object, "n_selected");
  out.n_initial = read_count(object, "n_initial");
  out.n_local = read_count(object, "n_local");
  out.window = read_count(object, "window");
  return out;
}

}  // namespace quern::contract
