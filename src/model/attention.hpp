// Attention of one branch: project, place (clip, norm, rotate, store in the cache), attend, project
// back.
#pragma once

#include "model/step.hpp"

namespace quern::model {

// input [tokens, d_model] -> out [tokens, d_model]; appends the new keys and values to the cache, except where they are
// the encoder's (source.hpp) or `stored`: by store_keys().
void run_attention(Step& step, const Attention& op, const LazyRows& input, const Rows& out, bool stored = false);

// The new keys and values alone into the cache: most tokens of the last layer are asked for nothing else.
void store_keys(Step& step, const Attention& op, const LazyRows& input);

// The key and value of token `token` of the step, as they go into a cache.
void place_kv(const Step& step, const Attention& op, std::size_t token, float* k, float* v);

struct CacheRow {
  std::size_t sequence, row;
};
void store_kv(const Step& step, const Attention& op, KvCache& cache, const CacheRow& place,
              const float* k, const float* v);

}  // namespace quern::model
