// The end of a pass: final norm, pooling, head.
#pragma once

#include "model/placement.hpp"
#include "model/step.hpp"

namespace quern::model {

struct Outputs {
  std::size_t n_hidden = 0, n_logits = 0;  // rows of scratch.hidden and scratch.logits
};

// The wanted rows of the stream -> scratch.hidden and, where asked for, scratch.logits.
Outputs finish(Step& step, const Placement& placement, bool logits);

// Every row of the stream -> scratch.encoded.
void finish_encoder(Step& step);

// One vector for the rows of `states`: the first, the last, or their mean (sums with rows
// ascending).
void pool_rows(const kernels::Kernels& kernels, contract::Pool mode, const Rows& states,
               float* out);

// The pooled rows through the layers behind the pooling -> out [contract::vector_width].
void finish_vector(Step& step, contract::Pool mode, const Rows& states, float* out);

}  // namespace quern::model
