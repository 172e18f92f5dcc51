// Attention and the cache in their plainest form, for tests and for `quern verify`: float64, one
// query, no tiles but for the scales of int8 weights. Not for running models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/attention_types.hpp"
#include "kernels/kernels.hpp"

namespace quern::kernels {

struct ReferenceQuery {
  const float* q;  // [d_k]
  const float* k;  // [n_keys, d_k]
  const float* v;  // [n_keys, d_v]
  std::size_t d_k, d_v;
  std::size_t begin, end;  // sees keys [begin, end) and the first `sinks` keys below end
  std::size_t sinks;
  double scale;
  double softcap;  // 0: none
  double alibi;    // slope; bias = slope * key index
  bool alibi_before_scale;
  const float* sink_logit;  // nullptr: none
  const float* bias;        // [end] added to the scores; nullptr: none
  bool alibi_bf16 = false;  // bias = bf16(slope * bf16(key index))
  // int8 values: v is code * v_scale[key], and weights become codes per tile and block (attention_integer.hpp).
  const float* v_scale = nullptr;  // [n_keys]
};

// output [d_v]; zeros for a query that sees no key. Returns what a weight whose code is off by one moves an output
// by, at most: a code may round either way where its weight is within float error of a tie (0: no codes).
double reference_attention(const ReferenceQuery& query, double* output);

// The query q [d_k] as the scores see it: where keys are int8, codes with one scale; of latent rows one for the latent
// part and one for the rotated.
std::vector<float> reference_query(const Kernels& kernels, const CacheLayout& layout, const float* q);

// The scale of one token's value in a block: ReferenceQuery::v_scale of int8 values.
float reference_v_scale(const CacheLayout& layout, const std::byte* block, std::size_t slot);

// The values a cache block holds for one token, scales applied: k [d_k], v [d_v]; of latent rows k [d_rope],
// v the latent [d_v].
void reference_load_kv(const CacheLayout& layout, const std::byte* block, std::size_t slot,
                       float* k, float* v);

}  // namespace quern::kernels
