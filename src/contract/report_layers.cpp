// What the report says per run of layers: which layers use a block, and what each adds to the
// cache.
#include <algorithm>
#include <limits>
#include <map>

#include "base/strings.hpp"
#include "contract/report.hpp"

namespace quern::contract {

using base::cat;

std::vector<LayerRun> layers_by_block(const Contract& contract) {
  std::vector<LayerRun> runs;
  const std::vector<LayerRef> layers = unroll(contract, *contract.decoder);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string& name = *layers[i].block_name;
    auto run = std::find_if(runs.begin(), runs.end(),
                            [&](const LayerRun& r) { return r.block_name == name; });
    if (run == runs.end()) run = runs.insert(runs.end(), LayerRun{name, {}});
    run->layers.push_back(i);
  }
  return runs;
}

std::string layer_list(const std::vector<std::size_t>& layers) {
  std::string out = layers.size() == 1 ? "layer " : "layers ";
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i;
    while (end + 1 < layers.size() && layers[end + 1] == layers[end] + 1) ++end;
    out += cat(i == 0 ? "" : ", ", layers[i], end == i ? "" : cat("-", layers[end]));
    i = end + 1;
  }
  return out;
}

std::vector<CacheOwner> cache_owners(const Contract& contract) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  std::vector<CacheOwner> owners;
  std::map<std::size_t, std::size_t> owner_of_layer;  // index in owners
  const std::vector<LayerRef> layers = unroll(contract, *contract.decoder);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const Branch& branch : layers[i].block->branches) {
      const auto& op = contract.ops.at(branch.op).attention;
      if (!op) continue;
      const std::size_t kept = op->mask.window ? *op->mask.window + op->mask.sinks : kAll;
      if (op->kv_from) {
        CacheOwner& owner = owners[owner_of_layer.at(*op->kv_from)];
        owner.kept = std::max(owner.kept, kept);
      } else {
        owner_of_layer[i] = owners.size();
        owners.push_back({i, &*op, kept});
      }
    }
  }
  return owners;
}

std::vector<CacheCost> cache_costs(const Contract& contract) {
  struct Type {
    const char* name;
    std::uint64_t value_bytes, scale_bytes;
  };
  static constexpr Type kTypes[] = {{"f32", 4, 0},  {"bf16", 2, 0},     {"f16", 2, 0},
                                    {"int8", 1, 4}, {"fp8_e4m3", 1, 4}, {"fp8_e5m2", 1, 4}};
  const std::vector<CacheOwner> owners = cache_owners(contract);
  std::vector<CacheCost> costs;
  for (const Type& type : kTypes) {
    CacheCost cost;
    cost.type = type.name;
    for (const CacheOwner& owner : owners) {
      const std::uint64_t heads = owner.op->n_kv_heads,
                          held = std::min<std::size_t>(owner.kept, 1024);
      const std::uint64_t payload = heads * (owner.op->d_k + owner.op->d_v) * type.value_bytes;
      const std::uint64_t scales = heads * 2 * type.scale_bytes;  // one for K, one for V
      cost.payload_bytes += payload;
      cost.scale_bytes += scales;
      cost.payload_bytes_1024 += held * payload;
      cost.scale_bytes_1024 += held * scales;
    }
    costs.push_back(cost);
  }
  return costs;
}

}  // namespace quern::contract
