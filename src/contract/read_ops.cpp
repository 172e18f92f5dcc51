#include "contract/limits.hpp"
#include "contract/read_parts.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::JsonObject;

Norm read_norm(JsonObject& object) {
  Norm norm{};
  norm.kind = object.get_enum("kind", kNormKinds);
  norm.eps = object.get_double("eps");
  norm.weight = object.get_bool("weight");
  norm.bias = object.get_bool("bias");
  norm.weight_offset = object.get_double("weight_offset");
  norm.accumulate = object.get_enum("accumulate", kAccumulates);
  return norm;
}

namespace {

RopeSwitch read_rope_switch(JsonObject object) {
  RopeSwitch rule{};
  rule.kind = object.get_enum("kind", kRopeSwitchKinds);
  rule.original_length = read_count(object, "original_length");
  if (rule.kind == RopeSwitchKind::dynamic_ntk) {
    rule.base = object.get_double("base");
    rule.factor = object.get_double("factor");
  } else {
    rule.long_inv_freq = read_floats(object, "long_inv_freq", kMaxWidth / 2);
    rule.long_mscale = object.get_double("long_mscale");
  }
  object.finish();
  return rule;
}

}  // namespace

Rope read_rope(JsonObject& object) {
  Rope rope{};
  rope.rule = std::string(object.get_enum("rule", kRopeRules));
  rope.base = object.get_double("base");
  rope.dims = read_count(object, "dims");
  rope.layout = object.get_enum("layout", kRopeLayouts);
  rope.inv_freq = read_floats(object, "inv_freq", kMaxWidth / 2);
  rope.mscale = object.get_double("mscale");
  rope.switch_rule = read_nullable(object, "switch",
                                   [&] { return read_rope_switch(object.get_object("switch")); });
  return rope;
}

namespace {

QkNorm read_qk_norm(JsonObject object) {
  QkNorm out{};
  out.norm = object.get_string("norm");
  out.over_all_heads = object.get_enum("over", kQkNormOver);
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
  object.finish();
  return alibi;
}

Attention read_attention(JsonObject& object) {
  if (object.has("source")) refuse_later(object.path_of("source"), "cross-attention");
  Attention out{};
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
  read_reserved(object, "relative_bias", "a relative position bias");
  out.sink_logits = object.get_bool("sink_logits");
  read_reserved(object, "indexer", "a sparse-attention indexer");
  out.kv_from = read_optional_count(object, "kv_from");
  return out;
}

Ffn read_ffn(JsonObject& object) {
  Ffn out{};
  out.d_ff = read_count(object, "d_ff");
  out.activation = object.get_enum("activation", kActivations);
  out.gated = object.get_bool("gated");
  JsonObject bias = object.get_object("bias");
  out.bias_in = bias.get_bool("in");
  out.bias_out = bias.get_bool("out");
  bias.finish();
  return out;
}

}  // namespace

Op read_op(JsonObject& object) {
  const std::string word = object.get_string("kind");
  for (const std::string_view later : kLaterOpKinds)
    if (word == later)
      refuse_later(object.path_of("kind"), base::cat("the op kind \"", later, "\""));
  Op op{object.get_enum("kind", kOpKinds), std::nullopt, std::nullopt};
  if (op.kind == OpKind::attention) op.attention = read_attention(object);
  if (op.kind == OpKind::ffn) op.ffn = read_ffn(object);
  return op;
}

}  // namespace quern::contract
