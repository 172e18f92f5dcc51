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
  // 8-bit values: v is code * v_scale[key].
  const float* v_scale = nullptr;  // [n_keys]
  // Of weights times v_scale: int8 values meet codes per tile and block (attention_shares.hpp), where products are of
  // bf16 numbers (cache_has_bf16_products) they are rounded to one, beside the largest score of their tile.
  enum class Weights { exact, codes, bf16 } weights = Weights::exact;
};

// output [d_v]; zeros for a query that sees no key. Returns what a weight that is off by one code, or one bf16 number,
// moves an output by, at most: it may round either way where it is within float error of a tie (0: exact weights).
double reference_attention(const ReferenceQuery& query, double* output);

// The query q [d_k] as the scores see it: where products are of bf16 numbers, those; where keys are int8, codes with one
// scale; of latent rows one for the latent part and one for the rotated.
std::vector<float> reference_query(const Kernels& kernels, const CacheLayout& layout, const float* q);

// n queries [n, d_k] as attend() takes them: [n, query_floats(d_k)].
std::vector<float> stored_queries(const Kernels& kernels, const CacheLayout& layout, const float* q, std::size_t n);

// How the weights of a cache's values are rounded.
ReferenceQuery::Weights reference_weights(const CacheLayout& layout);
// The scale of one token's value in a block: ReferenceQuery::v_scale of 8-bit values.
float reference_v_scale(const CacheLayout& layout, const std::byte* block, std::size_t slot);

// The values a cache block holds for one token, scales applied: k [d_k], v [d_v]; of latent rows k [d_rope],
// v the latent [d_v].
void reference_load_kv(const CacheLayout& layout, const std::byte* block, std::size_t slot,
                       float* k, float* v);
// Such values as products take them: f16 ones may be rounded to bf16.
void reference_round_kv(const CacheLayout& layout, float* k, float* v);

}  // namespace quern::kernels
