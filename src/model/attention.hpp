// Attention of one branch: project, place (norm, rotate, store in the cache), attend, project back.
#pragma once

#include "model/step.hpp"

namespace quern::model {

// Tokens whose queries share one pass over the keys, so that a tile of keys is read once for about
// kQueryRows query rows.
std::size_t query_tokens(const contract::Attention& spec);

// Floats of the softmax states (max, sum, o) of one tile for the queries of one KV head.
std::size_t tile_state_floats(std::size_t n_queries, std::size_t o_stride);

// input [tokens, d_model] -> out [tokens, d_model]; appends the new keys and values to the cache.
void run_attention(Step& step, const Attention& op, const Rows& input, const Rows& out);

}  // namespace quern::model
