// Points 5 to 7 of the report: who sees whom, positions, what the cache stores.
#include <algorithm>

#include "base/strings.hpp"
#include "contract/json_printer.hpp"
#include "contract/report.hpp"
#include "contract/tensors.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::cat;
using base::grouped;

ReportSection mask_point(const Contract& contract) {
  ReportSection out{"5. Mask", {}};
  for (const auto& [name, op] : contract.ops) {
    if (!op.attention) continue;
    const Mask& mask = op.attention->mask;
    std::string text(base::enum_name(mask.kind, kMaskKinds));
    text += mask.window
                ? cat(", window of ", grouped(*mask.window), " keys, the query's own included")
                : ", all positions up to the query's own";
    if (mask.sinks > 0) text += cat(", and the first ", mask.sinks, " positions always");
    out.rows.push_back({cat("attention \"", name, "\""), text});
  }
  out.rows.push_back(
      {"document boundary", "a sequence is one document; nothing is visible across sequences"});
  out.rows.push_back({"sparse pattern", "none"});
  return out;
}

namespace {

// The finished table, eight values a line.
std::string table_text(const std::vector<float>& table) {
  std::string out;
  for (std::size_t i = 0; i < table.size(); ++i)
    out += cat(i % 8 == 0 ? "\n" : " ", print_json_inline(json_float(table[i])));
  return out;
}

std::string rope_text(const Rope& rope) {
  std::string text =
      cat("rule ", rope.rule, ", base ", number_text(rope.base), ", first ", rope.dims,
          " dimensions of a head, layout ", base::enum_name(rope.layout, kRopeLayouts),
          rope.layout == RopeLayout::half ? cat(" (i, i + ", rope.dims / 2, ")") : " (2i, 2i + 1)",
          "\ncosine and sine x ", number_text(rope.mscale),
          "\nfrequencies (radians per position):", table_text(rope.inv_freq));
  if (!rope.switch_rule) return text;
  const RopeSwitch& rule = *rope.switch_rule;
  text +=
      cat("\nabove ", grouped(rule.original_length),
          " positions, chosen once per request: ", base::enum_name(rule.kind, kRopeSwitchKinds));
  if (rule.kind == RopeSwitchKind::dynamic_ntk)
    return text + cat(", base ", number_text(rule.base), ", factor ", number_text(rule.factor));
  return text + cat(", cosine and sine x ", number_text(rule.long_mscale),
                    ", frequencies:", table_text(rule.long_inv_freq));
}

}  // namespace

ReportSection positions_point(const Contract& contract) {
  ReportSection out{"6. Positions", {{"trained length", grouped(contract.max_positions)}}};
  if (const auto& table = contract.embedding.positions)
    out.rows.push_back(
        {"position table", cat(base::enum_name(table->kind, kPositionTableKinds), ", ",
                               grouped(table->rows), " rows, row = position + ", table->offset)});
  for (const auto& [name, rope] : contract.ropes)
    out.rows.push_back({cat("rope \"", name, "\""), rope_text(rope)});
  for (const auto& [name, op] : contract.ops) {
    if (!op.attention) continue;
    const Attention& a = *op.attention;
    std::string text = a.rope ? cat("rope ", *a.rope, ", ", contract.ropes.at(*a.rope).dims, " of ",
                                    a.d_k, " dimensions")
                              : "no rotation";
    if (a.alibi)
      text += cat("\nALiBi, added ", a.alibi->before_scale ? "before" : "after",
                  " the scale, slopes:", table_text(a.alibi->slopes));
    out.rows.push_back({cat("attention \"", name, "\""), text});
  }
  return out;
}

namespace {

// Layers that store the same.
struct CacheGroup {
  const Attention* op;
  std::size_t kept;
  std::vector<std::size_t> layers;
};
std::vector<CacheGroup> cache_groups(const Contract& contract) {
  std::vector<CacheGroup> groups;
  for (const CacheOwner& owner : cache_owners(contract)) {
    const auto same = [&](const CacheGroup& group) {
      return group.op == owner.op && group.kept == owner.kept;
    };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end())
      group = groups.insert(groups.end(), CacheGroup{owner.op, owner.kept, {}});
    group->layers.push_back(owner.layer);
  }
  return groups;
}

}  // namespace

ReportSection cache_point(const Contract& contract) {
  ReportSection out{"7. Cache", {}};
  out.rows.push_back({"stored", "K and V of every KV head, as after rotation and QK-norm"});
  for (const CacheGroup& group : cache_groups(contract)) {
    const Attention& op = *group.op;
    const std::size_t n = group.layers.size();
    std::string text =
        cat(n, " x ", op.n_kv_heads, " x (", op.d_k, " + ", op.d_v,
            ") = ", grouped(n * op.n_kv_heads * (op.d_k + op.d_v)), " values per token");
    if (group.kept < contract.max_positions)
      text += cat(", held for ", grouped(group.kept), " tokens");
    out.rows.push_back({layer_list(group.layers), text});
  }
  out.rows.push_back(
      {"formula", "sum over layers of tokens held x n_kv_heads x (d_k + d_v) x bytes of a value"});
  out.rows.push_back({"values per token", grouped(cache_values_per_token(contract))});
  out.rows.push_back(
      {"scales", "int8 (the default) and fp8: one f32 for K and one for V, per token and KV head"});
  for (const CacheCost& cost : cache_costs(contract)) {
    const bool scales = cost.scale_bytes > 0;
    out.rows.push_back(
        {cost.type,
         cat(grouped(cost.payload_bytes),
             scales ? cat(" + scales ", grouped(cost.scale_bytes)) : "",
             " bytes per token; 1,024 tokens: ", grouped(cost.payload_bytes_1024),
             scales ? cat(" + scales ", grouped(cost.scale_bytes_1024)) : "", " bytes")});
  }
  return out;
}

}  // namespace quern::contract
