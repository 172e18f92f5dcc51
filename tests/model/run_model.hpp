// Runs a bound model in tests: one sequence in chunks, logits of every position.
#pragma once

#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "model/forward.hpp"
#include "model/kv_cache.hpp"
#include "model/tiny_model.hpp"

namespace quern::tests {

struct RunOptions {
  std::size_t n_threads = 1, chunk = 0;  // chunk 0: all at once
  kernels::CacheType cache = kernels::CacheType::f32;
  bool deterministic = true;
};

// Logits [ids, vocab_size], row-major.
inline std::vector<float> run_all(const model::Model& model, const std::vector<std::int32_t>& ids,
                                  const RunOptions& options) {
  const std::size_t chunk = options.chunk == 0 ? ids.size() : options.chunk;
  base::ThreadPool pool(options.n_threads, options.n_threads);
  model::KvCache cache(model, {options.cache, options.cache, 1, ids.size()});
  model::Runner runner(model, cache, pool, chunk, ids.size());
  runner.set_deterministic(options.deterministic);
  std::vector<float> logits;
  for (std::size_t first = 0; first < ids.size(); first += chunk) {
    const std::size_t n = std::min(chunk, ids.size() - first);
    const model::Slice slice{0, std::span(ids).subspan(first, n), model::Want::all};
    runner.forward({&slice, 1});
    for (std::size_t row = 0; row < runner.n_logits(); ++row)
      logits.insert(logits.end(), runner.logits(row),
                    runner.logits(row) + model.contract.vocab_size);
  }
  return logits;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace quern::tests
