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

Ffn read_ffn(JsonObject& object) {
  Ffn out{};
  out.d_ff = read_count(object, "d_ff");
  out.activation = object.get_enum("activation", kActivations);
  out.gated = object.get_bool("gated");
  out.clamp = read_optional_number(object, "clamp");
  out.up_offset = object.get_double("up_offset");
  JsonObject bias = object.get_object("bias");
  out.bias_in = bias.get_bool("in");
  out.bias_out = bias.get_bool("out");
  bias.finish();
  return out;
}

Router read_router(JsonObject object) {
  Router out{};
  out.score = object.get_enum("score", kRouterScores);
  out.bias = object.get_bool("bias");
  out.select_bias = object.get_bool("select_bias");
  out.n_groups = read_count(object, "n_groups");
  out.top_groups = read_count(object, "top_groups");
  out.group_score = object.get_enum("group_score", kGroupScores);
  out.normalize = object.get_bool("normalize");
  out.normalize_eps = object.get_double("normalize_eps");
  out.scale = object.get_double("scale");
  object.finish();
  return out;
}

SharedExpert read_shared_expert(JsonObject object) {
  SharedExpert out{};
  out.ffn = read_ffn(object);
  out.gate = object.get_bool("gate");
  object.finish();
  return out;
}

Moe read_moe(JsonObject& object) {
  Moe out{};
  out.n_experts = read_count(object, "n_experts");
  out.top_k = read_count(object, "top_k");
  JsonObject expert = object.get_object("expert");
  out.expert = read_ffn(expert);
  expert.finish();
  out.router = read_router(object.get_object("router"));
  out.shared = read_nullable(object, "shared",
                             [&] { return read_shared_expert(object.get_object("shared")); });
  return out;
}

}  // namespace

Op read_op(JsonObject& object) {
  Op op{};
  op.kind = object.get_enum("kind", kOpKinds);
  switch (op.kind) {
    case OpKind::attention:
      op.attention = read_attention(object);
      break;
    case OpKind::mla:
      op.mla = read_mla(object);
      break;
    case OpKind::nsa:
      op.nsa = read_nsa(object);
      break;
    case OpKind::ffn:
      op.ffn = read_ffn(object);
      break;
    case OpKind::moe:
      op.moe = read_moe(object);
      break;
  }
  return op;
}

}  // namespace quern::contract
