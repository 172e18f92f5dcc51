// Stacks and runs of layers as the report names them.
#include <algorithm>

#include "base/strings.hpp"
#include "contract/report.hpp"

namespace quern::contract {

using base::cat;

std::vector<NamedStack> stacks_of(const Contract& contract) {
  const bool both = contract.encoder && contract.decoder;
  std::vector<NamedStack> out;
  if (contract.encoder) out.push_back({both ? "encoder " : "", &*contract.encoder});
  if (contract.decoder) out.push_back({both ? "decoder " : "", &*contract.decoder});
  return out;
}

const Stack& output_stack(const Contract& contract) {
  return contract.decoder ? *contract.decoder : *contract.encoder;
}

std::vector<LayerRun> layers_by_block(const Contract& contract, const Stack& stack) {
  std::vector<LayerRun> runs;
  const std::vector<LayerRef> layers = unroll(contract, stack);
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

}  // namespace quern::contract
