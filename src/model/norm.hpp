// Normalization of rows of activations.
#pragma once

#include "model/step.hpp"

namespace quern::model {

// y[i] = norm(x[i]) for every row; y may be x.
void normalize(Step& step, const Norm& norm, const Rows& x, const Rows& y);

}  // namespace quern::model
