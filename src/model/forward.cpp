#include "model/forward.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/round_up.hpp"
#include "contract/tensors.hpp"
#include "model/block.hpp"
#include "model/embedding.hpp"
#include "model/finish.hpp"
#include "model/placement.hpp"
#include "model/source.hpp"
#include "model/step.hpp"

namespace quern::model {

namespace {

constexpr std::size_t kPlacedTokens = 16;  // whose angles, 2 us each, are made by one thread

// K and V of one layer of an encoder, for the tokens of one step: every sequence starts a block of
// its own.
std::unique_ptr<KvCache> step_cache(const Model& model, std::size_t max_chunk) {
  if (!model.encoder) return nullptr;
  const CacheOptions options{kernels::CacheType::f32, kernels::CacheType::f32, 1,
                             max_chunk * kernels::kBlockTokens};
  return std::make_unique<KvCache>(model.encoder->cache_layers, options);
}

// What cross-attention reads: as many sequences as the decoder's cache, each of one step's tokens
// at most.
std::unique_ptr<KvCache> cross_cache(const Model& model, const KvCache& cache,
                                     std::size_t max_chunk) {
  if (!model.encoder || !model.decoder) return nullptr;
  CacheOptions options = cache.options();
  options.max_tokens = max_chunk;
  return std::make_unique<KvCache>(model.decoder->cross_layers, options);
}

CacheExtent extent_of(const KvCache& cache, std::size_t max_chunk) {
  return {cache.options().n_sequences, std::max(cache.options().max_tokens, max_chunk)};
}

}  // namespace

std::size_t chunk_for(const Model& model, const RequestShape& shape, std::size_t wanted) {
  // An encoder sees all of its input at once, and a pool all of a sequence.
  const bool whole = !model.decoder || model.head.pool;
  const std::size_t needed = std::max({std::size_t{1}, shape.n_encoder_tokens, shape.prefix_length,
                                       whole ? shape.n_tokens : std::size_t{0}});
  return std::max(needed, std::min(wanted, shape.n_tokens));
}

struct Runner::State {
  State(const Model& model_, KvCache& cache_, base::ThreadPool& pool_, std::size_t max_chunk_,
        std::size_t total_length_)
      : model(model_),
        cache(cache_),
        pool(pool_),
        in_step(step_cache(model_, max_chunk_)),
        source(cross_cache(model_, cache_, max_chunk_)),
        scratch(model_, extent_of(cache_, max_chunk_), max_chunk_, pool_.n_threads()),
        positions(model_, max_chunk_, total_length_),
        placement(max_chunk_),
        declared(total_length_) {}

  const Model& model;
  KvCache& cache;
  base::ThreadPool& pool;
  std::unique_ptr<KvCache> in_step;  // of the encoder
  std::unique_ptr<KvCache> source;   // of the decoder's cross-attention
  Scratch scratch;
  PositionTables positions;
  Placement placement;  // of the last forward() or encode()
  Outputs outputs;      // of the last forward()
  std::size_t n_encoded = 0;
  bool logits = true;
  Tap tap;
  PartWatch part_watch;
  std::function<bool()> stop_requested;
  std::size_t declared;  // length of sequences that state none
  bool deterministic = false;

  const PartWatch* watch() const { return part_watch ? &part_watch : nullptr; }
  // watch: told the step's parts; given in forward() alone, for the output stack.
  Step step(const Stack& stack, KvCache& own, KvCache* cross, const PartWatch* watch = nullptr) {
    return {model,
            stack,
            own,
            cross,
            pool,
            scratch,
            positions,
            placement.tokens,
            placement.runs,
            placement.wanted_part(),
            tap ? &tap : nullptr,
            watch,
            deterministic};
  }
  void place_positions();
  void place_whole(std::span<const Slice> slices);
};

namespace {

// Embedding and every layer: the residual stream is what is left in scratch.stream. False: stopped.
bool run_layers(Step& step, const std::function<bool()>* stop = nullptr) {
  embed(step);
  Addition left;
  for (std::size_t layer = 0; layer < step.stack.layers.size(); ++layer) {
    if (stop != nullptr && (*stop)()) return false;
    step.begins(Part::layer);
    run_block(step, step.stack.layers[layer], layer, left);
    if (step.n_tokens() == 0) return true;  // nothing is asked of these
  }
  step.begins(Part::final_norm);
  finish_addition(step, left);
  return true;
}

}  // namespace

// Angles of every token, by the declared length of its sequence.
void Runner::State::place_positions() {
  const std::size_t most = cache.options().max_tokens;
  for (const Run& run : placement.runs) {
    const std::size_t length = run.total_length != 0 ? run.total_length : declared;
    positions.declare(model, length);
    auto place = [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t t = run.first_token + begin; t < run.first_token + end; ++t) {
        placement.tokens[t].total_length = std::min(length, most);
        positions.set(t, placement.tokens[t].position);
      }
    };
    pool.parallel_for(run.n_tokens, kPlacedTokens, place);
  }
}

// For an encoder over whole sequences, whose K and V do not outlive the step.
void Runner::State::place_whole(std::span<const Slice> slices) {
  placement.place_whole(model, slices);
  in_step->clear(0);
  in_step->reserve(0, placement.n_rows);
  place_positions();
}

Runner::Runner(const Model& model, KvCache& cache, base::ThreadPool& pool, std::size_t max_chunk,
               std::size_t total_length)
    : state_(std::make_unique<State>(
          model, cache, pool, max_chunk,
          total_length != 0 ? total_length : model.contract.max_positions)) {
  QUERN_ASSERT(max_chunk > 0);
}

Runner::~Runner() = default;

void Runner::encode(std::span<const Slice> slices) {
  State& s = *state_;
  QUERN_ASSERT(s.source != nullptr);
  s.place_whole(slices);
  Step encoder = s.step(*s.model.encoder, *s.in_step, nullptr);
  run_layers(encoder);
  s.n_encoded = s.placement.tokens.size();
  finish_encoder(encoder);
  Step decoder = s.step(*s.model.decoder, s.cache, s.source.get());
  store_source(decoder);
}

bool Runner::forward(std::span<const Slice> slices) {
  State& s = *state_;
  if (s.part_watch) s.part_watch(Part::embedding);
  if (s.model.decoder) {
    s.placement.place(s.model, slices, s.cache, s.source.get());
    for (const Run& run : s.placement.runs) s.cache.reserve(run.sequence, run.n_tokens);
    s.place_positions();
    s.placement.gather_wanted();
  } else {
    s.place_whole(slices);
  }
  Step step = s.step(s.model.output_stack(), s.model.decoder ? s.cache : *s.in_step, s.source.get(), s.watch());
  const bool asks = s.model.decoder && s.stop_requested && step.n_tokens() > 1;
  if (!run_layers(step, asks ? &s.stop_requested : nullptr)) {
    s.outputs = {};
    return false;
  }
  if (s.model.decoder)
    for (const Run& run : s.placement.runs) s.cache.commit(run.sequence, run.n_tokens);
  s.outputs = finish(step, s.placement, s.logits);
  step.begins(Part::end);
  return true;
}

std::size_t Runner::n_encoded() const {
  return state_->n_encoded;
}

const float* Runner::encoded(std::size_t row) const {
  QUERN_ASSERT(row < n_encoded());
  return state_->scratch.encoded.rows(n_encoded(), state_->model.contract.d_model).row(row);
}

std::size_t Runner::n_hidden() const {
  return state_->outputs.n_hidden;
}

const float* Runner::hidden(std::size_t row) const {
  QUERN_ASSERT(row < n_hidden());
  return state_->scratch.hidden.rows(n_hidden(), state_->model.contract.d_model).row(row);
}

std::size_t Runner::n_logits() const {
  return state_->outputs.n_logits;
}

std::size_t Runner::n_outputs() const {
  return state_->model.head.logits.out;
}

const float* Runner::logits(std::size_t row) const {
  QUERN_ASSERT(row < n_logits());
  return state_->scratch.logits.rows(n_logits(), n_outputs()).row(row);
}

void Runner::pool(contract::Pool mode, std::size_t first, std::size_t n, float* out) const {
  QUERN_ASSERT(n > 0 && first + n <= n_hidden());
  const Rows hidden = state_->scratch.hidden.rows(n_hidden(), state_->model.contract.d_model);
  Step step = state_->step(state_->model.output_stack(), state_->cache, nullptr);
  finish_vector(step, mode, {hidden.row(first), n, hidden.width, hidden.stride}, out);
}

const KvCache* Runner::source_cache() const {
  return state_->source.get();
}

std::size_t Runner::scratch_bytes() const {
  return state_->scratch.bytes();
}

void Runner::set_logits(bool computed) {
  state_->logits = computed;
}

void Runner::set_tap(Tap tap) {
  state_->tap = std::move(tap);
}

void Runner::set_part_watch(PartWatch watch) {
  state_->part_watch = std::move(watch);
}

void Runner::set_stop(std::function<bool()> stop_requested) {
  state_->stop_requested = std::move(stop_requested);
}

void Runner::set_total_length(std::size_t total_length) {
  state_->declared = total_length;
}

void Runner::set_deterministic(bool deterministic) {
  state_->deterministic = deterministic;
}

const std::vector<std::vector<std::uint64_t>>& Runner::expert_loads() const {
  return state_->scratch.moe.loads;
}

}  // namespace quern::model
