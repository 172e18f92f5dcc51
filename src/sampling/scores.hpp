// Arithmetic on one row of logits or log-probabilities: checks, normalization. Not here: rules
// about tokens (token_rules.hpp), choosing one (sampler.hpp, beam_search.hpp).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace quern::sampling {

// Input error naming the first logit that is not finite, and `step`; never a token from such a row.
void check_finite(std::span<const float> logits, std::size_t step);

// scores = log softmax(scores), the sum in double. A row of -infinity only stays as it is.
void log_softmax(std::span<float> scores);

// Indexes of the k largest values, best first; equal values by index.
std::vector<std::size_t> best_indexes(std::span<const float> values, std::size_t k);

}  // namespace quern::sampling
