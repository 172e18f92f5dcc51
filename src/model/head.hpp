// Hidden states -> logits, for the wanted positions only.
#pragma once

#include "model/step.hpp"

namespace quern::model {

// hidden [wanted, d_model] (after the final norm) -> logits [wanted, vocab_size]:
// softcap(logit_scale * (W (in_scale * hidden) + b)).
void run_head(Step& step, const Rows& hidden, const Rows& logits);

// norm(act(W x + b)) of `input` -> `output` [n, transform.linear.out].
void run_transform(Step& step, const HeadTransform& transform, const Rows& input, const Rows& output);

}  // namespace quern::model
