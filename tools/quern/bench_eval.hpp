// Perplexity of a text under a model with given cache types: --eval of quern bench.
#pragma once

#include <string>

#include "base/thread_pool.hpp"
#include "kernels/attention_types.hpp"
#include "model/model.hpp"

namespace quern::tool {

struct BenchEval {
  std::string text, where;
  std::size_t max_tokens = 4096;
  kernels::CacheType k_type, v_type;
};
// exp of the mean negative log-likelihood of every token but the first of each window of 512 tokens.
double bench_perplexity(const model::Model& model, base::ThreadPool& pool, const BenchEval& eval);

}  // namespace quern::tool
