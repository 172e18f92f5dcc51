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

// The text behind the id that a decoder's input begins with, without its last token: row i of the
// decoder stands for token i.
std::vector<std::int32_t> shifted(std::span<const std::int32_t> ids, std::int32_t start) {
  std::vector<std::int32_t> result{start};
  result.insert(result.end(), ids.begin(), ids.end() - 1);
  return result;
}

void run_step(const model::Model& model, model::Runner& runner, model::KvCache& cache,
              std::span<const PackedSequence> sequences) {
  std::vector<model::Slice> slices;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (model.decoder) cache.clear(i);
    model::Slice slice{i, sequences[i].ids, model::Want::all};
    slice.token_types = sequences[i].types;
    slices.push_back(slice);
  }
  std::vector<std::vector<std::int32_t>> decoder_ids;
  if (model.encoder && model.decoder) {
    runner.encode(slices);
    for (model::Slice& slice : slices) {
      decoder_ids.push_back(shifted(slice.ids, *model.contract.tokens.decoder_start));
      slice.ids = decoder_ids.back();
    }
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
  if (model.encoder && model.decoder && !model.contract.tokens.decoder_start)
    base::reject(model.weights.where(), "the model says no decoder_start token: texts cannot be given to its decoder");
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
    run_step(model, runner, cache, sequences.subspan(first, n));
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
