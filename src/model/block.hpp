// One layer: a list of branches, each reading the residual stream and adding its result to it.
#pragma once

#include "model/step.hpp"

namespace quern::model {

// layer_index names the layer to a tap; the layer itself says everything else.
void run_block(Step& step, const Layer& layer, std::size_t layer_index);

}  // namespace quern::model
