#include "contract/document.hpp"
#include "contract/json_printer.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::enum_name;
using base::Json;

namespace {

Json floats_document(const std::vector<float>& values) {
  Json out = Json::array();
  for (const float value : values) out.push_back(json_float(value));
  return out;
}

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

Json qk_norm_document(const QkNorm& qk_norm) {
  return {{"norm", qk_norm.norm}, {"over", enum_name(qk_norm.over_all_heads, kQkNormOver)}};
}

Json mask_document(const Mask& mask) {
  return {{"kind", enum_name(mask.kind, kMaskKinds)},
          {"window", optional_document(mask.window)},
          {"sinks", mask.sinks}};
}

Json alibi_document(const Alibi& alibi) {
  return {{"slopes", floats_document(alibi.slopes)}, {"before_scale", alibi.before_scale}};
}

void add_attention(const Attention& op, Json& out) {
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
  out["relative_bias"] = nullptr;
  out["sink_logits"] = op.sink_logits;
  out["indexer"] = nullptr;
  out["kv_from"] = optional_document(op.kv_from);
}

void add_ffn(const Ffn& op, Json& out) {
  out["d_ff"] = op.d_ff;
  out["activation"] = enum_name(op.activation, kActivations);
  out["gated"] = op.gated;
  out["bias"] = {{"in", op.bias_in}, {"out", op.bias_out}};
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
  if (op.ffn) add_ffn(*op.ffn, out);
  return out;
}

}  // namespace quern::contract
