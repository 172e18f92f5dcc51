#include "contract/document.hpp"
#include "contract/json_printer.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::enum_name;
using base::Json;

Json floats_document(const std::vector<float>& values) {
  Json out = Json::array();
  for (const float value : values) out.push_back(json_float(value));
  return out;
}

namespace {

Json switch_document(const RopeSwitch& rule) {
  Json out = {{"kind", enum_name(rule.kind, kRopeSwitchKinds)},
              {"original_length", rule.original_length}};
  if (rule.kind == RopeSwitchKind::dynamic_ntk) {
    out["base"] = rule.base;
    out["factor"] = rule.factor;
  } else {
    out["long_inv_freq"] = floats_document(rule.long_inv_freq);
    out["long_mscale"] = rule.long_mscale;
  }
  return out;
}

void add_ffn(const Ffn& op, Json& out) {
  out["d_ff"] = op.d_ff;
  out["activation"] = enum_name(op.activation, kActivations);
  out["gated"] = op.gated;
  out["clamp"] = optional_document(op.clamp);
  out["up_offset"] = op.up_offset;
  out["bias"] = {{"in", op.bias_in}, {"out", op.bias_out}};
}

Json router_document(const Router& router) {
  return {{"score", enum_name(router.score, kRouterScores)},
          {"bias", router.bias},
          {"select_bias", router.select_bias},
          {"n_groups", router.n_groups},
          {"top_groups", router.top_groups},
          {"group_score", enum_name(router.group_score, kGroupScores)},
          {"normalize", router.normalize},
          {"normalize_eps", router.normalize_eps},
          {"scale", router.scale}};
}

void add_moe(const Moe& op, Json& out) {
  out["n_experts"] = op.n_experts;
  out["top_k"] = op.top_k;
  Json expert = Json::object();
  add_ffn(op.expert, expert);
  out["expert"] = std::move(expert);
  out["router"] = router_document(op.router);
  out["shared"] = nullptr;
  if (!op.shared) return;
  Json shared = Json::object();
  add_ffn(op.shared->ffn, shared);
  shared["gate"] = op.shared->gate;
  out["shared"] = std::move(shared);
}

}  // namespace

Json norm_document(const Norm& norm) {
  return {{"kind", enum_name(norm.kind, kNormKinds)},
          {"eps", norm.eps},
          {"weight", norm.weight},
          {"bias", norm.bias},
          {"weight_offset", json_plain_number(norm.weight_offset)},
          {"accumulate", enum_name(norm.accumulate, kAccumulates)}};
}

Json rope_document(const Rope& rope) {
  return {{"rule", rope.rule},
          {"base", rope.base},
          {"dims", rope.dims},
          {"layout", enum_name(rope.layout, kRopeLayouts)},
          {"inv_freq", floats_document(rope.inv_freq)},
          {"mscale", rope.mscale},
          {"switch", rope.switch_rule ? switch_document(*rope.switch_rule) : Json(nullptr)}};
}

Json op_document(const Op& op) {
  Json out = {{"kind", enum_name(op.kind, kOpKinds)}};
  if (op.attention) add_attention(*op.attention, out);
  if (op.mla) add_mla(*op.mla, out);
  if (op.nsa) add_nsa(*op.nsa, out);
  if (op.ffn) add_ffn(*op.ffn, out);
  if (op.moe) add_moe(*op.moe, out);
  return out;
}

}  // namespace quern::contract
