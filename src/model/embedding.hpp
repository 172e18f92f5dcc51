// Token ids -> the residual stream.
#pragma once

#include "model/step.hpp"

namespace quern::model {

// stream[t] = norm(scale * token[id] + type[type] + position[position + offset]), projected where the model
// does so; or the position is added last.
void embed(Step& step);

}  // namespace quern::model
