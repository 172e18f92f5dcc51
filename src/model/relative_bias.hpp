// Learned bias by distance (arXiv 1910.10683): one number per bucket of distances and head is
// added to the score. A tile of keys gets one line per head, bias by key - query; each query reads
// it from its own place on, so nothing of size S x S is ever stored.
#pragma once

#include "model/step.hpp"

namespace quern::model {

// Bucket of `distance` = key - query.
std::size_t relative_bucket(const contract::RelativeBias& spec, std::int64_t distance);

// line[i] = bias at distance first + i, i < n, for heads [head, head + group) of table [buckets,
// n_heads]; the lines lie `stride` floats apart.
struct BiasLines {
  const contract::RelativeBias& spec;
  const float* table;
  std::size_t n_heads, head, group;
};
void fill_bias_lines(const BiasLines& bias, std::int64_t first, std::size_t n, float* lines,
                     std::size_t stride);

}  // namespace quern::model
