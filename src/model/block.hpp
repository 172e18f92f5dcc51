// One layer: a list of branches, each reading the residual stream and adding its result to it.
#pragma once

#include "model/step.hpp"

namespace quern::model {

// The result of a branch that is not in the stream yet: whoever reads the stream next adds it row by row, on the way.
struct Addition {
  Rows sum, y;                     // [tokens, d_model]
  const Branch* branch = nullptr;  // null: nothing is left
  float skip_scale = 1;
};

// `left`: of the block before, then of this one. layer_index: of the layer in its stack. Behind the stack's last_store
// the step has its wanted tokens alone.
void run_block(Step& step, const Layer& layer, std::size_t layer_index, Addition& left);

void finish_addition(Step& step, Addition& left);

}  // namespace quern::model
