// Token ids -> the residual stream.
#pragma once

#include "model/step.hpp"

namespace quern::model {

// stream[t] = norm(scale * token[id] + position[position + offset]).
void embed(Step& step);

}  // namespace quern::model
