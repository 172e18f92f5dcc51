// One vector of a text: how a model's hidden states are pooled, and what is made of the result. Shared by `quern embed`
// and `quern batch`.
#pragma once

#include <string>
#include <vector>

#include "contract/contract.hpp"

namespace quern::tool {

// The contract's way of pooling, else the mean (of a decoder, which sees only what came before: the last).
contract::Pooling default_pooling(const contract::Contract& contract);

// To length 1; a vector of zeros stays.
void normalize(std::vector<float>& vector);

bool is_finite(const std::vector<float>& vector);

}  // namespace quern::tool
