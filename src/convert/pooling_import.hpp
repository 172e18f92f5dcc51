// How a checkpoint makes one vector of a text: the modules of a sentence-transformers directory, or
// the pooling type of a GGUF file. Not here: doing it (model/finish.hpp).
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "contract/contract.hpp"
#include "convert/recipe.hpp"

namespace quern::convert {

// Sets contract.pooling where the checkpoint says it, and a norm that its layers need. Returns where
// the tensors of those layers lie. What quern does not follow is a notice where the mode of pooling
// is left to the user, else an input error.
std::vector<TensorSource> import_pooling(const checkpoint::Checkpoint& checkpoint,
                                         contract::Contract& contract,
                                         std::vector<std::string>& notices);

}  // namespace quern::convert
