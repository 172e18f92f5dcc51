#include "engine/packed_batch.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::engine {

namespace {

constexpr std::size_t kMaxSequencesOfStep = 256;

// How many sequences from `first` on run together.
std::size_t sequences_of_step(std::span<const PackedSequence> sequences, std::size_t first,
                              std::size_t most_tokens) {
  std::size_t n = 0, tokens = 0;
  while (first + n < sequences.size() && n < kMaxSequencesOfStep) {
    tokens += sequences[first + n].ids.size();
    if (n > 0 && tokens > most_tokens) break;
    ++n;
  }
  return n;
}

void run_step(model::Runner& runner, model::KvCache& cache, bool keeps,
              std::span<const PackedSequence> sequences) {
  std::vector<model::Slice> slices;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (keeps) cache.clear(i);
    model::Slice slice{i, sequences[i].ids, model::Want::all};
    slice.token_types = sequences[i].types;
    slices.push_back(slice);
  }
  runner.forward(slices);
}

}  // namespace

bool run_packed(const model::Model& model, base::ThreadPool& pool,
                std::span<const PackedSequence> sequences, const PackOptions& options,
                const std::function<void(const PackedResult&)>& on_result) {
  std::size_t longest = 1;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].ids.empty()) base::reject(base::cat("input ", i + 1), "has no tokens");
    longest = std::max(longest, sequences[i].ids.size());
  }
  const std::size_t chunk = std::max(longest, options.step_tokens);
  model::CacheOptions cache_options;
  cache_options.k_type = cache_options.v_type = kernels::CacheType::f32;
  cache_options.n_sequences = std::clamp<std::size_t>(sequences.size(), 1, kMaxSequencesOfStep);
  cache_options.max_tokens = longest;
  model::KvCache cache(model, cache_options);
  model::Runner runner(model, cache, pool, chunk, longest);
  runner.set_logits(options.logits);
  const bool pooled = model.head.pool.has_value();
  for (std::size_t first = 0; first < sequences.size();) {
    if (options.stop_requested && options.stop_requested()) return false;
    const std::size_t n = sequences_of_step(sequences, first, chunk);
    run_step(runner, cache, model.decoder.has_value(), sequences.subspan(first, n));
    std::size_t row = 0;
    for (std::size_t i = 0; i < n; ++i) {
      on_result({first + i, runner, row, pooled ? i : row});
      row += sequences[first + i].ids.size();
    }
    first += n;
  }
  return true;
}

}  // namespace quern::engine
