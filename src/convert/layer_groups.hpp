// The layers of a stack, from one block name per layer to the contract's groups of pattern x
// repeat. Not here: what the blocks are (contract_template.hpp).
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "contract/contract.hpp"
#include "convert/expression.hpp"

namespace quern::convert {

// Greedy from the first layer: the pattern that covers most layers in two or more repetitions, the
// shortest of equals; a layer that begins no repetition is a group of its own.
std::vector<contract::LayerGroup> group_layers(const std::vector<std::string>& blocks);

// {"count": n, "block": expression over $layer} -> the list of groups as JSON; anything else is
// evaluated as it stands. Blocks of `per_layer` get the layer's index behind their names.
base::Json evaluate_layers(const base::Json& layers, const Environment& environment,
                           const std::set<std::string>& per_layer, std::string_view where);

// The environment in which $layer is `layer`.
Environment of_layer(const Environment& environment, const base::Json& layer);

}  // namespace quern::convert
