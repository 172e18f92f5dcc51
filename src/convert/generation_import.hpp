// Special ids and generation defaults of a checkpoint: generation_config.json over config.json over
// what the tokenizer says.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "contract/contract.hpp"

namespace quern::convert {

// Merges into contract.tokens (already the tokenizer's) and contract.generation. Ids outside the
// vocabulary and defaults that quern does not follow are notices.
void import_generation(const checkpoint::Checkpoint& checkpoint, contract::Contract& contract,
                       std::vector<std::string>& notices);

}  // namespace quern::convert
