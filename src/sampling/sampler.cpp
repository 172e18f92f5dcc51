#include "sampling/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "sampling/random.hpp"
#include "sampling/scores.hpp"

namespace quern::sampling {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

struct Candidate {
  float logit;
  std::int32_t id;
  double weight;  // exp(logit - largest), unnormalized probability
};

// Total order: larger logits first, equal ones by id.
bool before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

void check_options(const SamplerOptions& o) {
  const auto refuse = [](std::string_view option, std::string_view what) {
    base::usage_error(option, what);
  };
  if (!(o.temperature >= 0) || !std::isfinite(o.temperature))
    refuse("--temp", "must be 0 or larger");
  if (!(o.top_p >= 0 && o.top_p <= 1)) refuse("--top-p", "must lie between 0 and 1");
  if (!(o.min_p >= 0 && o.min_p <= 1)) refuse("--min-p", "must lie between 0 and 1");
  if (!(o.repeat_penalty > 0) || !std::isfinite(o.repeat_penalty))
    refuse("--repeat-penalty", "must be larger than 0");
}

}  // namespace

// Filters in the order people know: penalties, top_k, top_p, min_p, temperature.
struct Sampler::State {
  State(const SamplerOptions& options_, std::size_t vocab_size)
      : options(options_),
        random(options_.seed),
        allowed(vocab_size),
        logits(vocab_size),
        history(options_.repeat_last_n),
        penalized(vocab_size, 0) {
    candidates.reserve(vocab_size);
  }

  SamplerOptions options;
  Random random;
  std::size_t allowed;
  std::vector<float> logits;            // copy with penalties
  std::vector<Candidate> candidates;    // sorted, best first
  std::vector<std::int32_t> history;    // ring of the last repeat_last_n ids
  std::size_t n_history = 0;            // ids ever accepted
  std::vector<std::uint8_t> penalized;  // marks of apply_penalties, all zero between calls
  std::optional<TokenRules> rules;
  Constraint* constraint = nullptr;
  std::vector<std::int32_t> sequence;  // all ids, kept for the rules

  void remember(std::int32_t id);
  void apply_constraint();
  void apply_penalties();
  std::int32_t greedy() const;
  void select_top_k();
  void cut(std::size_t n) { candidates.resize(std::max<std::size_t>(n, 1)); }
  void keep_top_p();
  void keep_min_p();
  void weigh(double temperature);
  std::int32_t draw();
};

void Sampler::State::apply_penalties() {
  if (options.repeat_penalty == 1 || history.empty()) return;
  const auto penalty = static_cast<float>(options.repeat_penalty);
  const std::size_t n = std::min(n_history, history.size());
  for (std::size_t i = 0; i < n; ++i) {
    const auto id = static_cast<std::size_t>(history[i]);
    if (id >= allowed || penalized[id] != 0) continue;
    penalized[id] = 1;
    logits[id] = logits[id] > 0 ? logits[id] / penalty : logits[id] * penalty;
  }
  for (std::size_t i = 0; i < n; ++i) penalized[static_cast<std::size_t>(history[i])] = 0;
}

void Sampler::State::apply_constraint() {
  const std::span<const std::uint64_t> bits = constraint->allowed();
  for (std::size_t begin = 0; begin < allowed; begin += 64) {
    const std::uint64_t word = begin / 64 < bits.size() ? bits[begin / 64] : 0;
    if (word == ~std::uint64_t{0}) continue;
    const std::size_t end = std::min(begin + 64, allowed);
    for (std::size_t i = begin; i < end; ++i)
      if ((word >> (i - begin) & 1) == 0) logits[i] = kNever;
  }
}

std::int32_t Sampler::State::greedy() const {
  std::size_t best = 0;
  for (std::size_t i = 1; i < allowed; ++i)
    if (logits[i] > logits[best]) best = i;
  return static_cast<std::int32_t>(best);
}

// The best k in order; all of them when top_k is off. Never those that the rules forbid.
void Sampler::State::select_top_k() {
  const std::size_t k = options.top_k == 0 ? allowed : std::min(options.top_k, allowed);
  candidates.clear();
  if (k == allowed) {
    for (std::size_t i = 0; i < allowed; ++i)
      if (logits[i] != kNever) candidates.push_back({logits[i], static_cast<std::int32_t>(i), 0});
    std::sort(candidates.begin(), candidates.end(), before);
    return;
  }
  // A heap whose front is the worst of the k kept so far; few of the vocabulary ever enter it.
  for (std::size_t i = 0; i < allowed; ++i) {
    const Candidate candidate{logits[i], static_cast<std::int32_t>(i), 0};
    if (candidate.logit == kNever) continue;
    if (candidates.size() == k) {
      if (!before(candidate, candidates.front())) continue;
      std::pop_heap(candidates.begin(), candidates.end(), before);
      candidates.pop_back();
    }
    candidates.push_back(candidate);
    std::push_heap(candidates.begin(), candidates.end(), before);
  }
  std::sort_heap(candidates.begin(), candidates.end(), before);
}

void Sampler::State::weigh(double temperature) {
  const double largest = candidates.front().logit;
  for (Candidate& c : candidates) c.weight = std::exp((c.logit - largest) / temperature);
}

// The shortest head of the list with at least top_p of the probability.
void Sampler::State::keep_top_p() {
  if (options.top_p >= 1) return;
  double total = 0, sum = 0;
  for (const Candidate& c : candidates) total += c.weight;
  std::size_t n = 0;
  while (n < candidates.size() && sum < options.top_p * total) sum += candidates[n++].weight;
  cut(n);
}

// Those at least min_p times as probable as the best.
void Sampler::State::keep_min_p() {
  if (options.min_p <= 0) return;
  std::size_t n = 0;
  while (n < candidates.size() && candidates[n].weight >= options.min_p * candidates[0].weight) ++n;
  cut(n);
}

std::int32_t Sampler::State::draw() {
  double total = 0;
  for (const Candidate& c : candidates) total += c.weight;
  double left = random.uniform() * total;
  for (const Candidate& c : candidates) {
    left -= c.weight;
    if (left < 0) return c.id;
  }
  return candidates.back().id;
}

Sampler::Sampler(const SamplerOptions& options, std::size_t vocab_size) {
  check_options(options);
  QUERN_ASSERT(vocab_size > 0);
  state_ = std::make_unique<State>(options, vocab_size);
}

Sampler::~Sampler() = default;

void Sampler::set_allowed(std::size_t allowed) {
  QUERN_ASSERT(allowed > 0 && allowed <= state_->logits.size());
  state_->allowed = allowed;
}

void Sampler::set_rules(TokenRules rules) {
  state_->rules = std::move(rules);
}

void Sampler::set_constraint(Constraint* constraint) {
  state_->constraint = constraint;
}

void Sampler::start(std::span<const std::int32_t> ids) {
  state_->n_history = 0;
  state_->sequence.clear();
  for (const std::int32_t id : ids) state_->remember(id);
  if (state_->constraint != nullptr) state_->constraint->restart();
}

std::int32_t Sampler::sample(std::span<const float> logits, std::size_t step) {
  State& s = *state_;
  QUERN_ASSERT(logits.size() == s.logits.size());
  check_finite(logits.first(s.allowed), step);
  std::copy(logits.begin(), logits.end(), s.logits.begin());
  s.apply_penalties();
  if (s.rules) s.rules->apply(s.sequence, s.logits);
  if (s.constraint != nullptr) s.apply_constraint();
  const std::int32_t best = s.greedy();
  if (s.logits[static_cast<std::size_t>(best)] == kNever)
    base::reject("model", base::cat("the rules and constraints about tokens leave none at step ", step));
  if (s.options.temperature == 0) return best;
  s.select_top_k();
  s.weigh(1);
  s.keep_top_p();
  s.keep_min_p();
  s.weigh(s.options.temperature);
  return s.draw();
}

void Sampler::State::remember(std::int32_t id) {
  QUERN_ASSERT(id >= 0 && static_cast<std::size_t>(id) < logits.size());
  if (rules) sequence.push_back(id);
  if (history.empty()) return;
  history[n_history++ % history.size()] = id;
}

void Sampler::accept(std::int32_t id) {
  state_->remember(id);
  if (state_->constraint != nullptr) state_->constraint->accept(id);
}

}  // namespace quern::sampling
