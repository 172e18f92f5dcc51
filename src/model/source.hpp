// What a decoder's cross-attention reads: K and V of the encoder's output, computed once per input.
#pragma once

#include "model/step.hpp"

namespace quern::model {

// step: the decoder with the tokens just encoded (scratch.encoded). Replaces what step.cross holds
// of their sequences.
void store_source(Step& step);

}  // namespace quern::model
