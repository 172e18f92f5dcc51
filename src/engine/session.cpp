#include "engine/session.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "engine/session_state.hpp"
#include "engine/stop_within.hpp"
#include "model/position.hpp"

namespace quern::engine {

namespace {

using Clock = std::chrono::steady_clock;

model::CacheOptions cache_options(const model::Model& model, const SessionOptions& options) {
  model::CacheOptions cache = options.cache;
  if (cache.max_tokens == 0) cache.max_tokens = model.contract.max_positions;
  cache.n_sequences = std::max<std::size_t>(options.n_beams, 1);
  cache.rollback = std::max(cache.rollback, options.max_draft);
  return cache;
}

// Most tokens of one step: the prefill chunk, but a whole source, every beam and all guesses must fit.
std::size_t step_tokens(const model::Model& model, const SessionOptions& options,
                        std::size_t max_tokens) {
  const std::size_t chunk = model::chunk_for(model, {max_tokens, options.source_length, 0},
                                             std::max<std::size_t>(options.prefill_chunk, 1));
  return std::max({chunk, options.n_beams, options.max_draft + 1});
}

}  // namespace

void check_generates(const model::Model& model) {
  if (!model.decoder || model.contract.head.kind != contract::HeadKind::lm)
    base::reject(model.weights.where(), "has no decoder with a language head: it cannot generate (see quern embed, "
                                        "classify and fill)");
}

Session::State::State(const model::Model& model_, base::ThreadPool& pool,
                      const SessionOptions& options)
    : model(model_),
      max_tokens(cache_options(model_, options).max_tokens),
      chunk(step_tokens(model_, options, max_tokens)),
      source_length(options.source_length),
      max_draft(options.max_draft),
      follow_length(options.follow_length),
      declared(options.follow_length ? model::declared_length_for(model_, 1, max_tokens)
               : options.total_length != 0 ? options.total_length
                                           : max_tokens),
      cache(model_, cache_options(model_, options)),
      runner(model_, cache, pool, chunk, declared),
      deterministic(options.deterministic) {
  runner.set_deterministic(deterministic);
  tokens.reserve(max_tokens);
}

void Session::State::restart_times(std::size_t n_tokens) {
  PhaseTimes next;
  next.encode_seconds = times.encode_seconds;
  next.encode_tokens = times.encode_tokens;
  next.token_seconds.reserve(n_tokens);
  times = std::move(next);
}

void Session::State::check_length(std::size_t n) const {
  if (n == 0) base::reject("prompt", "is empty");
  if (n > max_tokens)
    base::reject("prompt", base::cat("prompt has ", n, " tokens, context is ", max_tokens));
}

void Session::State::forget_all() {
  cache.clear(kSessionSequence);
  tokens.clear();
}

// True: what was held is worth nothing under the new length.
bool Session::State::declare(std::size_t length) {
  if (length == declared) return false;
  const bool changes = model::length_hash(model, length, max_tokens) !=
                       model::length_hash(model, declared, max_tokens);
  declared = length;
  runner.set_total_length(length);
  if (changes) forget_all();
  return changes;
}

// A text of n_tokens gets the position tables a fresh session would give it.
void Session::State::follow(std::size_t n_tokens, const GenerateOptions& options) {
  if (!follow_length) return;
  const std::size_t before = declared;
  const bool held = !tokens.empty();
  const std::size_t length = model::declared_length_for(model, n_tokens, max_tokens);
  if (declare(length) && held && options.on_rebuild) options.on_rebuild({before, length, n_tokens});
}

// How many of `ids` the cache holds and can be cut back to; never the last id, whose logits are needed.
std::size_t Session::State::common_prefix(std::span<const std::int32_t> ids) const {
  const std::size_t limit = std::min(tokens.size(), ids.size() - std::min<std::size_t>(ids.size(), 1));
  std::size_t common = 0;
  while (common < limit && tokens[common] == ids[common]) ++common;
  return cache.reaches(kSessionSequence, common) ? common : 0;
}

// Cuts the cache back to what it shares with `ids`: how many that is.
std::size_t Session::State::keep_prefix(std::span<const std::int32_t> ids) {
  const std::size_t common = common_prefix(ids);
  cache.truncate(kSessionSequence, common);
  tokens.resize(common);
  return common;
}

// False: stopped within the step, which leaves nothing in the cache.
bool Session::State::run(std::span<const std::int32_t> ids, model::Want want) {
  const model::Slice slice{kSessionSequence, ids, want};
  if (!runner.forward({&slice, 1})) return false;
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  row = 0;
  return true;
}

// False when it was asked to stop; what is done so far stays in the cache.
bool Session::State::prefill(std::span<const std::int32_t> ids, const GenerateOptions& options) {
  const std::size_t total = ids.size();
  const Clock::time_point start = Clock::now();
  bool stopped = false;
  const StopWithin stop(runner, options.stop_requested);
  if (options.on_prefill) options.on_prefill(0, total);
  while (!ids.empty() && !stopped) {
    const std::size_t n = std::min(chunk, ids.size());
    stopped = (options.stop_requested && options.stop_requested()) ||
              !run(ids.first(n), n == ids.size() ? model::Want::last : model::Want::none);
    if (stopped) break;
    times.prefill_tokens += n;
    ids = ids.subspan(n);
    if (options.on_prefill) options.on_prefill(total - ids.size(), total);
  }
  times.prefill_seconds += seconds_since(start);
  return !stopped;
}

// The text goes on with `id`. Where that has no place or needs other position tables, the text, or what
// the caller keeps of it, is computed again. False: the answer ends, `end` says why.
bool Session::State::append(std::int32_t id, const GenerateOptions& options,
                            std::optional<FinishReason>& end) {
  std::vector<std::int32_t> text = tokens;
  text.push_back(id);
  if (text.size() > max_tokens) {
    end = FinishReason::length;
    if (!options.on_full) return false;
    text = options.on_full(text);
    if (text.empty()) return false;
    check_length(text.size());
  }
  follow(text.size(), options);
  const std::size_t held = keep_prefix(text);
  times.rebuilt_tokens += text.size() - held;
  end = FinishReason::interrupted;
  return prefill(std::span(text).subspan(held), options);
}

Session::Session(const model::Model& model, base::ThreadPool& pool, const SessionOptions& options)
    : state_(std::make_unique<State>(model, pool, options)) {}

Session::~Session() = default;

FinishReason Session::generate(std::span<const std::int32_t> ids, sampling::Sampler& sampler,
                               const GenerateOptions& options,
                               const std::function<bool(std::int32_t)>& on_token) {
  State& s = *state_;
  check_generates(s.model);
  s.check_length(ids.size());
  s.restart_times(std::min(options.max_new_tokens, s.max_tokens));
  s.follow(ids.size(), options);
  const std::size_t held = s.keep_prefix(ids);
  s.times.reused_tokens = held;
  if (!s.prefill(ids.subspan(held), options)) return FinishReason::interrupted;
  sampler.start(ids);
  return s.decode(sampler, options, on_token);
}

void Session::encode(std::span<const std::int32_t> source) {
  State& s = *state_;
  check_generates(s.model);
  if (!s.model.encoder) base::reject("model", "has no encoder");
  if (source.empty()) base::reject("source", "is empty");
  if (source.size() > s.source_length)
    base::reject("source", "too many tokens", base::cat(source.size()),
                 base::cat("at most ", s.source_length));
  const Clock::time_point start = Clock::now();
  s.forget_all();
  const model::Slice slice{kSessionSequence, source, model::Want::none};
  s.runner.encode({&slice, 1});
  s.times.encode_seconds = seconds_since(start);
  s.times.encode_tokens = source.size();
}

void Session::evaluate(std::span<const std::int32_t> ids,
                       const std::function<void(std::size_t, const float*)>& on_logits) {
  State& s = *state_;
  s.check_length(ids.size());
  s.follow(ids.size(), {});
  s.forget_all();
  for (std::size_t first = 0; first < ids.size(); first += s.chunk) {
    s.run(ids.subspan(first, std::min(s.chunk, ids.size() - first)), model::Want::all);
    for (std::size_t row = 0; row < s.runner.n_logits(); ++row)
      on_logits(first + row, s.runner.logits(row));
  }
}

const std::vector<std::int32_t>& Session::tokens() const {
  return state_->tokens;
}
std::size_t Session::reusable_tokens(std::span<const std::int32_t> ids) const {
  return state_->common_prefix(ids);
}
std::span<const float> Session::logits() const {
  return {state_->runner.logits(state_->row), state_->model.contract.vocab_size};
}
const PhaseTimes& Session::times() const {
  return state_->times;
}
const model::Model& Session::model() const {
  return state_->model;
}
std::size_t Session::context() const {
  return state_->max_tokens;
}
std::size_t Session::declared_length() const {
  return state_->declared;
}
bool Session::deterministic() const {
  return state_->deterministic;
}
bool Session::follows_length() const {
  return state_->follow_length;
}
bool Session::declare_length(std::size_t total_length) {
  return state_->declare(total_length != 0 ? total_length : state_->max_tokens);
}
void Session::clear() {
  state_->forget_all();
}
void Session::restore(std::span<const std::int32_t> ids, std::span<const std::byte> cache) {
  State& s = *state_;
  s.cache.load(kSessionSequence, ids.size(), cache);
  s.tokens.assign(ids.begin(), ids.end());
}
const model::KvCache& Session::cache() const {
  return state_->cache;
}
model::KvCache& Session::cache() {
  return state_->cache;
}
model::Runner& Session::runner() {
  return state_->runner;
}

}  // namespace quern::engine
