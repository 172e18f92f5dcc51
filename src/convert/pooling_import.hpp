// How a checkpoint makes one vector of a text: the modules of a sentence-transformers directory, or
// the pooling type of a GGUF file. Not here: doing it (model/finish.hpp).
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "contract/contract.hpp"

namespace quern::convert {

// Sets contract.pooling where the checkpoint says it. What quern does not follow is a notice.
void import_pooling(const checkpoint::Checkpoint& checkpoint, contract::Contract& contract,
                    std::vector<std::string>& notices);

}  // namespace quern::convert
