#include "model/forward.hpp"

#include <cstring>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "model/block.hpp"
#include "model/embedding.hpp"
#include "model/head.hpp"
#include "model/norm.hpp"
#include "model/position.hpp"
#include "model/step.hpp"

namespace quern::model {

struct Runner::State {
  State(const Model& model_, KvCache& cache_, base::ThreadPool& pool_, std::size_t max_chunk_,
        std::size_t total_length)
      : model(model_),
        cache(cache_),
        pool(pool_),
        max_chunk(max_chunk_),
        scratch(model_, cache_, max_chunk_, pool_.n_threads()),
        positions(model_, max_chunk_, total_length) {
    tokens.reserve(max_chunk);
    runs.reserve(max_chunk);
    wanted.reserve(max_chunk);
  }

  const Model& model;
  KvCache& cache;
  base::ThreadPool& pool;
  std::size_t max_chunk;
  Scratch scratch;
  PositionTables positions;
  std::vector<TokenPlace> tokens;  // of the last forward()
  std::vector<Run> runs;
  std::vector<std::size_t> wanted;  // tokens whose logits are computed
  Tap tap;

  void place_tokens(std::span<const Slice> slices);
  void check_slice(const Slice& slice) const;
  void finish(Step& step);
  void observe(std::string_view name, const Rows& rows) const {
    if (tap) tap(name, rows.data, rows.n, rows.width, rows.stride);
  }
};

// Input errors before anything is written to the cache.
void Runner::State::check_slice(const Slice& slice) const {
  for (const std::int32_t id : slice.ids)
    if (id < 0 || static_cast<std::size_t>(id) >= model.contract.vocab_size)
      base::reject("prompt", "token id out of range", base::cat(id),
                   base::cat("0 to ", model.contract.vocab_size - 1));
  const weights::TensorView* table = model.embedding.positions;
  if (table == nullptr) return;
  const std::size_t end = cache.length(slice.sequence) + slice.ids.size();
  const std::size_t n_positions = table->rows - model.embedding.position_offset;
  if (end > n_positions)
    base::reject("prompt", "more tokens than the model has positions", base::cat(end),
                 base::cat("at most ", n_positions));
}

void Runner::State::place_tokens(std::span<const Slice> slices) {
  tokens.clear();
  runs.clear();
  wanted.clear();
  for (const Slice& slice : slices) {
    check_slice(slice);
    if (slice.ids.empty()) continue;
    QUERN_ASSERT(tokens.size() + slice.ids.size() <= max_chunk);
    const std::size_t first = cache.length(slice.sequence);
    runs.push_back({slice.sequence, tokens.size(), slice.ids.size(), first});
    for (std::size_t i = 0; i < slice.ids.size(); ++i) {
      const bool last = i + 1 == slice.ids.size();
      if (slice.want == Want::all || (slice.want == Want::last && last))
        wanted.push_back(tokens.size());
      positions.set(tokens.size(), first + i);
      tokens.push_back({slice.ids[i], static_cast<std::uint32_t>(slice.sequence),
                        static_cast<std::uint32_t>(first + i)});
    }
  }
  for (const Run& run : runs) cache.reserve(run.sequence, run.n_tokens);
}

// Final norm and head, for the wanted tokens only.
void Runner::State::finish(Step& step) {
  const std::size_t d_model = model.contract.d_model;
  const Rows stream = scratch.stream.rows(tokens.size(), d_model);
  const Rows hidden = scratch.hidden.rows(wanted.size(), d_model);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    std::memcpy(hidden.row(i), stream.row(wanted[i]), d_model * sizeof(float));
  if (model.final_norm) normalize(step, *model.final_norm, hidden, hidden);
  observe("hidden", hidden);
  if (model.head.logits.weight == nullptr) return;
  const Rows logits = scratch.logits.rows(wanted.size(), model.contract.vocab_size);
  run_head(step, hidden, logits);
  observe("logits", logits);
}

Runner::Runner(const Model& model, KvCache& cache, base::ThreadPool& pool, std::size_t max_chunk,
               std::size_t total_length)
    : state_(std::make_unique<State>(
          model, cache, pool, max_chunk,
          total_length != 0 ? total_length : model.contract.max_positions)) {
  QUERN_ASSERT(max_chunk > 0);
}

Runner::~Runner() = default;

void Runner::forward(std::span<const Slice> slices) {
  State& s = *state_;
  s.place_tokens(slices);
  Step step{s.model,     s.cache,  s.pool, s.scratch,
            s.positions, s.tokens, s.runs, s.tap ? &s.tap : nullptr};
  embed(step);
  s.observe("embedding", s.scratch.stream.rows(s.tokens.size(), s.model.contract.d_model));
  for (std::size_t layer = 0; layer < s.model.layers.size(); ++layer)
    run_block(step, s.model.layers[layer], layer);
  for (const Run& run : s.runs) s.cache.commit(run.sequence, run.n_tokens);
  s.finish(step);
}

std::size_t Runner::n_logits() const {
  return state_->wanted.size();
}

const float* Runner::logits(std::size_t row) const {
  QUERN_ASSERT(row < n_logits() && state_->model.head.logits.weight != nullptr);
  return state_->scratch.logits.rows(n_logits(), state_->model.contract.vocab_size).row(row);
}

const float* Runner::hidden(std::size_t row) const {
  QUERN_ASSERT(row < n_logits());
  return state_->scratch.hidden.rows(n_logits(), state_->model.contract.d_model).row(row);
}

std::size_t Runner::scratch_bytes() const {
  return state_->scratch.bytes();
}

void Runner::set_tap(Tap tap) {
  state_->tap = std::move(tap);
}

}  // namespace quern::model
