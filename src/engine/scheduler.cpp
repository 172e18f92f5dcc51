#include "engine/scheduler.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "engine/shared_beginnings.hpp"
#include "engine/stop_within.hpp"
#include "model/position.hpp"

namespace quern::engine {

namespace {

using Clock = Sequence::Clock;

double seconds_between(Clock::time_point a, Clock::time_point b) {
  return a == Clock::time_point() || b < a ? 0 : std::chrono::duration<double>(b - a).count();
}

// The decoder of an encoder-decoder reads another source in each sequence: its keys and values are never shared.
bool shares(const model::Model& model, const SchedulerOptions& options) {
  return options.share_prefixes && !model.encoder;
}

model::CacheOptions cache_options(const model::Model& model, const SchedulerOptions& options) {
  check_generates(model);
  QUERN_ASSERT(options.n_parallel > 0);
  model::CacheOptions cache = options.cache;
  if (cache.max_tokens == 0) cache.max_tokens = model.contract.max_positions;
  cache.n_sequences = options.n_parallel + (shares(model, options) ? options.prefix_sequences : 0);
  return cache;
}

}  // namespace

struct Scheduler::State {
  State(const model::Model& model, base::ThreadPool& pool, const SchedulerOptions& options);

  const model::Model& model;
  SchedulerOptions options;
  std::size_t chunk;        // most tokens of one step
  std::size_t encode_chunk; // of one encode()
  model::KvCache cache;
  model::Runner runner;
  SharedBeginnings beginnings;
  std::deque<std::unique_ptr<Sequence>> waiting;
  std::vector<std::unique_ptr<Sequence>> running;  // in the order in which they began
  std::vector<std::size_t> free_slots;
  std::vector<model::Slice> slices;  // of the step
  std::vector<Sequence*> stepped;    // whose slices they are
  Totals totals;

  std::size_t max_tokens() const { return cache.options().max_tokens; }
  std::size_t held(const Sequence& s) const { return cache.length(s.slot); }
  bool decodes(const Sequence& s) const { return s.started && s.text.size() == held(s) + 1; }

  void check(const SequenceRequest& request) const;
  void admit();
  void encode_sources();
  void plan();
  std::size_t plan_slice(Sequence& s, std::size_t n);
  void after_step();
  void sample(Sequence& s, std::span<const float> logits);
  void finish(Sequence& s, FinishReason reason, std::string error = {});
  void retire();
};

Scheduler::State::State(const model::Model& model_, base::ThreadPool& pool, const SchedulerOptions& options_)
    : model(model_),
      options(options_),
      chunk(std::max(options_.step_tokens, options_.n_parallel)),
      encode_chunk(model_.encoder ? std::max(chunk, options_.source_length) : 0),
      cache(model_, cache_options(model_, options_)),
      runner(model_, cache, pool, std::max(chunk, encode_chunk), cache.options().max_tokens),
      beginnings(cache, options_.n_parallel, cache.options().n_sequences - options_.n_parallel,
                 shares(model_, options_)) {
  runner.set_deterministic(true);
  for (std::size_t slot = options.n_parallel; slot > 0; --slot) free_slots.push_back(slot - 1);
  slices.reserve(options.n_parallel);
  stepped.reserve(options.n_parallel);
}

void Scheduler::State::check(const SequenceRequest& request) const {
  const std::size_t n = request.prompt.size();
  if (n == 0) base::reject("prompt", "is empty");
  if (n > max_tokens())
    base::reject("prompt", base::cat("prompt has ", n, " tokens, context is ", max_tokens()));
  model::check_slice(*model.decoder, {0, request.prompt}, 0);
  if (!model.encoder) return;
  if (request.source.empty()) base::reject("source", "is empty");
  if (request.source.size() > options.source_length)
    base::reject("source", "too many tokens", base::cat(request.source.size()),
                 base::cat("at most ", options.source_length));
  model::check_slice(*model.encoder, {0, request.source}, 0);
}

void Scheduler::State::admit() {
  while (!free_slots.empty() && !waiting.empty()) {
    std::unique_ptr<Sequence> s = std::move(waiting.front());
    waiting.pop_front();
    s->slot = free_slots.back();
    free_slots.pop_back();
    s->admitted = Clock::now();
    s->text.reserve(s->n_prompt + s->request.max_new_tokens);
    if (s->request.max_new_tokens == 0) finish(*s, FinishReason::length);
    running.push_back(std::move(s));
  }
  totals.most_running = std::max(totals.most_running, running.size());
}

// As many sources as fit into one run of the encoder; the others wait for the next step.
void Scheduler::State::encode_sources() {
  slices.clear();
  stepped.clear();
  std::size_t left = encode_chunk;
  for (const std::unique_ptr<Sequence>& s : running) {
    if (s->encoded || s->done || s->request.source.size() > left) continue;
    left -= s->request.source.size();
    slices.push_back({s->slot, s->request.source, model::Want::none});
    slices.back().total_length = s->request.total_length;
    stepped.push_back(s.get());
  }
  if (slices.empty()) return;
  runner.encode(slices);
  for (Sequence* s : stepped) s->encoded = true;
}

// The next n tokens of the sequence into the step. Returns how many these are.
std::size_t Scheduler::State::plan_slice(Sequence& s, std::size_t n) {
  const std::size_t first = held(s);
  const bool last = first + n == s.text.size();
  model::Slice slice{s.slot, std::span(s.text).subspan(first, n), last ? model::Want::last : model::Want::none};
  slice.total_length = s.request.total_length;
  try {
    model::check_slice(*model.decoder, slice, first);
  } catch (const base::Error& error) {  // more tokens than the model has positions
    finish(s, FinishReason::interrupted, error.what());
    return 0;
  }
  slices.push_back(slice);
  stepped.push_back(&s);
  return n;
}

// First every sequence that decodes, then prompts in the order of their sequences: the first is done soonest.
void Scheduler::State::plan() {
  slices.clear();
  stepped.clear();
  std::size_t left = chunk;
  for (const std::unique_ptr<Sequence>& s : running)
    if (!s->done && decodes(*s)) left -= plan_slice(*s, 1);
  for (const std::unique_ptr<Sequence>& s : running) {
    if (left == 0) break;
    if (s->done || decodes(*s) || !s->encoded) continue;
    const std::size_t n = beginnings.chunk_of(*s, std::min(left, s->text.size() - held(*s)));
    if (n > 0) left -= plan_slice(*s, n);
  }
}

void Scheduler::State::after_step() {
  std::size_t row = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    Sequence& s = *stepped[i];
    if (s.started)
      ++totals.decode_tokens;
    else
      totals.prefill_tokens += slices[i].ids.size();
    beginnings.keep_at_cut(s);
    if (slices[i].want == model::Want::last) sample(s, {runner.logits(row++), model.contract.vocab_size});
  }
}

void Scheduler::State::sample(Sequence& s, std::span<const float> logits) {
  if (!s.started) s.first_token = Clock::now();
  std::int32_t id = 0;
  try {
    if (!s.started) s.request.sampler->start(s.text);
    s.started = true;
    id = s.request.sampler->sample(logits, s.outcome.answer_tokens);
    s.request.sampler->accept(id);
  } catch (const base::Error& error) {
    return finish(s, FinishReason::interrupted, error.what());
  }
  const std::vector<std::int32_t>& stops = s.request.stop_ids;
  if (std::find(stops.begin(), stops.end(), id) != stops.end()) return finish(s, FinishReason::stop);
  s.text.push_back(id);
  ++s.outcome.answer_tokens;
  if (s.request.on_token && !s.request.on_token(id, logits)) return finish(s, FinishReason::stop);
  if (s.outcome.answer_tokens == s.request.max_new_tokens) finish(s, FinishReason::length);
}

void Scheduler::State::finish(Sequence& s, FinishReason reason, std::string error) {
  const Clock::time_point now = Clock::now();
  s.done = true;
  SequenceOutcome& outcome = s.outcome;
  outcome.reason = reason;
  outcome.error = std::move(error);
  outcome.queue_seconds = seconds_between(s.added, s.admitted == Clock::time_point() ? now : s.admitted);
  outcome.prefill_seconds = seconds_between(s.admitted, s.first_token == Clock::time_point() ? now : s.first_token);
  outcome.decode_seconds = seconds_between(s.first_token, now);
}

// Sequences that are done leave the cache, and are told so.
void Scheduler::State::retire() {
  for (std::size_t i = 0; i < running.size();) {
    if (!running[i]->done) {
      ++i;
      continue;
    }
    const std::unique_ptr<Sequence> s = std::move(running[i]);
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    beginnings.leave(*s, running);
    cache.clear(s->slot);
    free_slots.push_back(s->slot);
    totals.reused_tokens += s->outcome.reused_tokens;
    if (s->request.on_finished) s->request.on_finished(s->outcome);
  }
}

Scheduler::Scheduler(const model::Model& model, base::ThreadPool& pool, const SchedulerOptions& options)
    : state_(std::make_unique<State>(model, pool, options)) {}

Scheduler::~Scheduler() = default;

void Scheduler::add(SequenceRequest request) {
  State& s = *state_;
  QUERN_ASSERT(request.sampler != nullptr);
  s.check(request);
  auto sequence = std::make_unique<Sequence>();
  sequence->n_prompt = sequence->outcome.prompt_tokens = request.prompt.size();
  sequence->text = std::move(request.prompt);
  // The last token needs no place in the cache.
  request.max_new_tokens = std::min(request.max_new_tokens, s.max_tokens() + 1 - sequence->n_prompt);
  if (request.total_length == 0) request.total_length = sequence->n_prompt + request.max_new_tokens;
  sequence->tables = model::length_hash(s.model, request.total_length, s.max_tokens());
  sequence->encoded = !s.model.encoder;
  sequence->request = std::move(request);
  sequence->added = Clock::now();
  s.waiting.push_back(std::move(sequence));
}

std::size_t Scheduler::n_waiting() const {
  return state_->waiting.size();
}
std::size_t Scheduler::n_running() const {
  return state_->running.size();
}
bool Scheduler::wants_more() const {
  return state_->waiting.size() < state_->options.n_parallel;
}

bool Scheduler::step(const std::function<bool()>& stop_requested) {
  State& s = *state_;
  if (s.waiting.empty() && s.running.empty()) return false;
  const Clock::time_point start = Clock::now();
  s.admit();
  s.retire();
  s.encode_sources();
  s.beginnings.settle(s.running);
  s.plan();
  if (!s.slices.empty()) {
    const StopWithin stop(s.runner, stop_requested);
    if (s.runner.forward(s.slices)) {
      ++s.totals.steps;
      s.after_step();
    }
  }
  s.totals.seconds += seconds_between(start, Clock::now());
  s.retire();
  return true;
}

void Scheduler::cancel() {
  State& s = *state_;
  for (const std::unique_ptr<Sequence>& running : s.running)
    if (!running->done) s.finish(*running, FinishReason::interrupted);
  std::deque<std::unique_ptr<Sequence>> waiting = std::move(s.waiting);
  s.waiting.clear();
  s.retire();
  for (const std::unique_ptr<Sequence>& w : waiting) {
    s.finish(*w, FinishReason::interrupted);
    if (w->request.on_finished) w->request.on_finished(w->outcome);
  }
}

const Scheduler::Totals& Scheduler::totals() const {
  return state_->totals;
}
const model::KvCache& Scheduler::cache() const {
  return state_->cache;
}

}  // namespace quern::engine
