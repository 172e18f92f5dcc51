// Point 7 of the report: what the cache stores, and its bytes by formula.
#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "base/strings.hpp"
#include "contract/cache_types.hpp"
#include "contract/report.hpp"
#include "contract/tensors.hpp"

namespace quern::contract {

using base::cat;
using base::grouped;

namespace {

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

std::size_t kept_by(const Mask& mask) {
  return mask.window ? *mask.window + mask.sinks : kAll;
}

// K and V of n_heads heads.
CachePart heads_part(std::size_t layer, const Op& op, std::string_view what, std::size_t n_heads,
                     std::size_t d_k, std::size_t d_v) {
  CachePart part{layer,
                 &op,
                 what,
                 cat(n_heads, " x (", d_k, " + ", d_v, ")"),
                 std::uint64_t{n_heads} * (d_k + d_v),
                 std::uint64_t{n_heads} * 2,
                 kAll};
  part.groups = std::uint64_t{n_heads} * ((d_k + 31) / 32 + (d_v + 31) / 32);
  return part;
}

void add_mla(std::size_t layer, const Op& op, std::vector<CachePart>& parts) {
  const Mla& mla = *op.mla;
  parts.push_back({layer, &op, "latent and rotated key, for all heads",
                   cat("(", mla.kv_rank, " + ", mla.d_rope, ")"),
                   std::uint64_t{mla.kv_rank} + mla.d_rope, 2, kept_by(mla.mask)});
  if (mla.indexer)
    parts.push_back({layer, &op, "indexer key", cat(mla.indexer->d_k), mla.indexer->d_k, 1, kAll});
}

void add_nsa(std::size_t layer, const Op& op, std::vector<CachePart>& parts) {
  const Nsa& nsa = *op.nsa;
  const auto part = [&](std::string_view what) {
    return heads_part(layer, op, what, nsa.n_kv_heads, nsa.d_k, nsa.d_v);
  };
  CachePart raw = part("K and V not compressed yet, f32"), rows = part("compressed K and V"),
            selected = part("K and V of the selected branch"),
            window = part("K and V of the window branch");
  raw.kept = nsa.compress_block;
  raw.exact = true;
  rows.row_block = nsa.compress_block;
  rows.row_stride = nsa.compress_stride;
  window.kept = nsa.window;
  parts.insert(parts.end(), {raw, rows, selected, window});
}

// Calls visit(layer, op) for every op of the decoder, in order.
template <class Visit>
void for_each_op(const Contract& contract, Visit visit) {
  if (!contract.decoder) return;
  const std::vector<LayerRef> layers = unroll(contract, *contract.decoder);
  for (std::size_t i = 0; i < layers.size(); ++i)
    for (const Branch& branch : layers[i].block->branches) visit(i, contract.ops.at(branch.op));
}

}  // namespace

std::uint64_t CachePart::rows(std::uint64_t n_tokens) const {
  const std::uint64_t begun = n_tokens < row_block ? 0 : (n_tokens - row_block) / row_stride + 1;
  return std::min<std::uint64_t>(begun, kept);
}

std::vector<CachePart> cache_parts(const Contract& contract) {
  std::vector<CachePart> parts;
  std::map<std::size_t, std::size_t> owner_of_layer;  // index in parts
  for_each_op(contract, [&](std::size_t layer, const Op& op) {
    if (op.mla) return add_mla(layer, op, parts);
    if (op.nsa) return add_nsa(layer, op, parts);
    if (!op.attention || op.attention->source == AttentionSource::encoder) return;
    const Attention& a = *op.attention;
    if (a.kv_from) {  // the widest of its readers decides what an owner holds
      CachePart& owner = parts[owner_of_layer.at(*a.kv_from)];
      owner.kept = std::max(owner.kept, kept_by(a.mask));
      return;
    }
    owner_of_layer[layer] = parts.size();
    parts.push_back(heads_part(layer, op, "K and V", a.n_kv_heads, a.d_k, a.d_v));
    parts.back().kept = kept_by(a.mask);
  });
  return parts;
}

std::vector<CachePart> cross_parts(const Contract& contract) {
  std::vector<CachePart> parts;
  for_each_op(contract, [&](std::size_t layer, const Op& op) {
    if (const auto& a = op.attention; a && a->source == AttentionSource::encoder)
      parts.push_back(
          heads_part(layer, op, "K and V of the encoder's output", a->n_kv_heads, a->d_k, a->d_v));
  });
  return parts;
}

std::vector<CacheCost> cache_costs(const Contract& contract) {
  struct Type {
    std::uint64_t value_bits, scale_bytes, group_scale_bytes;
  };
  static constexpr std::array<Type, kCacheTypeNames.size()> kTypes = {
      {{32, 0, 0}, {16, 0, 0}, {16, 0, 0}, {8, 4, 0}, {8, 4, 0}, {8, 4, 0}, {4, 0, 2}}};
  const std::vector<CachePart> parts = cache_parts(contract);
  std::vector<CacheCost> costs;
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    const Type& type = kTypes[i];
    CacheCost cost;
    cost.type = kCacheTypeNames[i];
    const auto no_groups = [](const CachePart& part) { return part.groups == 0 && !part.exact; };
    if (type.group_scale_bytes != 0 && std::any_of(parts.begin(), parts.end(), no_groups)) continue;
    for (const CachePart& part : parts) {
      const std::uint64_t payload = part.exact ? part.values * 4 : (part.values * type.value_bits + 7) / 8;
      const std::uint64_t scales =
          part.exact ? 0 : part.scales * type.scale_bytes + part.groups * type.group_scale_bytes;
      const std::uint64_t full = part.rows(contract.max_positions), some = part.rows(1024);
      if (part.row_stride == 1) {
        cost.payload_bytes += payload;
        cost.scale_bytes += scales;
      }
      cost.payload_bytes_1024 += some * payload;
      cost.scale_bytes_1024 += some * scales;
      cost.payload_bytes_full += full * payload;
      cost.scale_bytes_full += full * scales;
    }
    costs.push_back(cost);
  }
  return costs;
}

namespace {

// Layers that store the same.
struct PartGroup {
  CachePart part;
  std::vector<std::size_t> layers;
};
std::vector<PartGroup> grouped_parts(const std::vector<CachePart>& parts) {
  std::vector<PartGroup> groups;
  for (const CachePart& part : parts) {
    const auto same = [&](const PartGroup& group) {
      return group.part.op == part.op && group.part.what == part.what &&
             group.part.kept == part.kept;
    };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end()) group = groups.insert(groups.end(), PartGroup{part, {}});
    group->layers.push_back(part.layer);
  }
  return groups;
}

void add_part_rows(const std::vector<CachePart>& parts, const std::string& unit,
                   std::size_t max_positions, std::vector<ReportRow>& rows) {
  for (const PartGroup& group : grouped_parts(parts)) {
    const CachePart& part = group.part;
    const std::size_t n = group.layers.size();
    std::string text = cat(part.what, ": ", n, " x ", part.formula, " = ", grouped(n * part.values),
                           " values per ", unit);
    if (part.row_stride > 1 || part.row_block > 1)
      text = cat(part.what, ": ", n, " x ", part.formula, " = ", grouped(n * part.values),
                 " values per row, a row of ", part.row_block, " tokens every ", part.row_stride);
    if (part.kept < max_positions) text += cat(", held for ", grouped(part.kept), " tokens");
    rows.push_back({layer_list(group.layers), text});
  }
}

bool selects(const Contract& contract) {
  return std::any_of(contract.ops.begin(), contract.ops.end(), [](const auto& entry) {
    return entry.second.nsa || (entry.second.mla && entry.second.mla->indexer);
  });
}

std::string bytes_text(std::uint64_t payload, std::uint64_t scales) {
  return cat(grouped(payload), scales > 0 ? cat(" + scales ", grouped(scales)) : "");
}

void add_cost_rows(const Contract& contract, std::vector<ReportRow>& rows) {
  for (const CacheCost& cost : cache_costs(contract))
    rows.push_back(
        {cost.type,
         cat(bytes_text(cost.payload_bytes, cost.scale_bytes), " bytes per token; 1,024 tokens: ",
             bytes_text(cost.payload_bytes_1024, cost.scale_bytes_1024), "; ",
             grouped(contract.max_positions),
             " tokens: ", bytes_text(cost.payload_bytes_full, cost.scale_bytes_full), " bytes")});
  if (rows.back().label != kCacheTypeNames.back())
    rows.push_back({std::string(kCacheTypeNames.back()), "not for this model: a latent row has no int4 form"});
}

}  // namespace

ReportSection cache_point(const Contract& contract) {
  ReportSection out{"7. Cache", {}};
  if (!contract.decoder) {
    out.rows.push_back({"stored", "nothing: an encoder sees its whole input at once"});
    return out;
  }
  out.rows.push_back({"stored", "keys as after QK-norm and rotation, values as projected"});
  const std::vector<CachePart> parts = cache_parts(contract);
  add_part_rows(parts, "token", contract.max_positions, out.rows);
  const std::vector<CachePart> cross = cross_parts(contract);
  add_part_rows(cross, "token of the encoder's input, filled once a request", kAll, out.rows);
  if (selects(contract))
    out.rows.push_back({"selection",
                        "does not shrink the cache: a query reads fewer keys, but any of them may "
                        "be chosen later, so all are held"});
  out.rows.push_back(
      {"formula", "sum over layers of rows held x values of a row x bytes of a value"});
  const bool sparse_rows = std::any_of(parts.begin(), parts.end(), [](const CachePart& p) { return p.row_stride > 1; });
  out.rows.push_back({"values per token", cat(grouped(cache_values_per_token(contract)),
                                              sparse_rows ? ", compressed rows apart" : "")});
  if (!cross.empty())
    out.rows.push_back(
        {"values per encoder token", grouped(cache_values_per_encoder_token(contract))});
  out.rows.push_back(
      {"scales", "int8 (the default) and fp8: one f32 for K and one for V, per token and KV head; "
                 "int4: one f16 per 32 values of either"});
  add_cost_rows(contract, out.rows);
  return out;
}

}  // namespace quern::contract
