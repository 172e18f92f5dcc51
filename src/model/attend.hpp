// softmax(q k) v over the keys that each query sees, in tiles of keys merged in index order: the
// bits do not depend on how tokens are cut into blocks or which thread takes a tile.
#pragma once

#include "model/step.hpp"

namespace quern::model {

// Keys that the queries see among those their mask allows: bit k % 32 of word k / 32 of
// bits + (token * n_groups + group) * words, k the key's position. One group: the same keys for all heads.
struct Selection {
  const std::uint32_t* bits;
  std::size_t words, n_groups;
};

// q [tokens, n_heads * d_k] -> out [tokens, n_heads * d_v], over the cache of the op's source.
void attend(Step& step, const Attention& op, const Rows& q, const Rows& out,
            const Selection* selection = nullptr);

// Tokens whose queries share one pass over the keys, so that a tile of keys is read once for about
// kQueryRows query rows.
std::size_t query_tokens(const Attention& op);

// Query heads of one group: they share their keys, and a thread takes them together.
std::size_t group_heads(const Attention& op);

// Floats of the softmax states (max, sum, o) of one tile for the queries of one KV head.
std::size_t tile_state_floats(std::size_t n_queries, std::size_t o_stride);

}  // namespace quern::model
