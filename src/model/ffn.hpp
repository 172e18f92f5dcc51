// Feed-forward branch: down(act(gate x) * (up x)), or down(act(up x)).
#pragma once

#include "model/step.hpp"

namespace quern::model {

// input [tokens, d_model] -> out [tokens, d_model].
void run_ffn(Step& step, const Ffn& op, const LazyRows& input, const Rows& out);

// up = act(gate) * (up + up_offset), both clamped before, or act(up), for n values.
void activate_row(const kernels::Kernels& kernels, const Ffn& op, float* gate, float* up, std::size_t n);

}  // namespace quern::model
