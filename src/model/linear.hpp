// y = W x + b for rows of activations: several matrices that share one input run in one parallel
// region. Not here: how a matrix is stored (quant) or multiplied (kernels).
#pragma once

#include <span>

#include "model/step.hpp"

namespace quern::model {

struct LinearJob {
  const Linear* linear;
  Rows out;  // [n, linear->out], stride >= out padded to 16
};

// Integer formats see `input` as int8 codes, quantized once for all jobs of the same activation
// group.
void run_linears(Step& step, const Rows& input, std::span<const LinearJob> jobs);

inline void run_linear(Step& step, const Rows& input, const Linear& linear, const Rows& out) {
  const LinearJob job{&linear, out};
  run_linears(step, input, {&job, 1});
}

}  // namespace quern::model
