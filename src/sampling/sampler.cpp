#include "sampling/sampler.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "sampling/candidates.hpp"
#include "sampling/filter.hpp"
#include "sampling/scores.hpp"

namespace quern::sampling {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

std::vector<std::unique_ptr<Filter>> make_chain(const SamplerOptions& options,
                                                std::size_t vocab_size) {
  std::vector<SamplerKind> kinds = options.samplers;
  if (options.mirostat != 0) kinds = {SamplerKind::temperature};
  std::vector<std::unique_ptr<Filter>> chain;
  for (const SamplerKind kind : kinds)
    if (auto filter = make_filter(kind, options, vocab_size)) chain.push_back(std::move(filter));
  return chain;
}

bool takes_best(const SamplerOptions& o) {
  const auto& used = o.samplers;
  return o.temperature <= 0 && o.dynatemp_range <= 0 &&
         (o.mirostat != 0 ||
          std::find(used.begin(), used.end(), SamplerKind::temperature) != used.end());
}

// How many filters of a greedy chain can change what is best: the rest need not run.
std::size_t needed_filters(const std::vector<std::unique_ptr<Filter>>& chain) {
  std::size_t n = chain.size();
  while (n > 0 && chain[n - 1]->keeps_best()) --n;
  return n;
}

}  // namespace

struct Sampler::State {
  State(const SamplerOptions& options, std::size_t vocab_size)
      : greedy(takes_best(options)),
        bias(options.logit_bias),
        random(options.seed),
        allowed(vocab_size),
        row(vocab_size),
        candidates(vocab_size),
        chain(make_chain(options, vocab_size)),
        chooser(make_chooser(options, vocab_size)) {
    sequence.reserve(4096);
    n_filters = greedy ? needed_filters(chain) : chain.size();
  }

  bool greedy;
  std::vector<std::pair<std::int32_t, float>> bias;
  Random random;
  std::size_t allowed;
  std::vector<float> row;  // the step's logits, with what comes before the chain
  Candidates candidates;
  std::vector<std::unique_ptr<Filter>> chain;
  std::size_t n_filters;
  std::unique_ptr<Chooser> chooser;
  std::optional<TokenRules> rules;
  std::optional<BannedTexts> banned;
  Constraint* constraint = nullptr;
  std::vector<std::int32_t> sequence;  // all ids

  void remember(std::int32_t id) {
    QUERN_ASSERT(id >= 0 && static_cast<std::size_t>(id) < row.size());
    sequence.push_back(id);
  }
  void apply_bias();
  void apply_constraint();
};

void Sampler::State::apply_bias() {
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (const auto& [id, value] : bias) {
    const auto i = static_cast<std::size_t>(id);
    if (id < 0 || i >= row.size()) continue;
    row[i] = value == kNever ? kNever : std::clamp(row[i] + value, -kLargest, kLargest);
  }
}

void Sampler::State::apply_constraint() {
  const std::span<const std::uint64_t> bits = constraint->allowed();
  for (std::size_t begin = 0; begin < allowed; begin += 64) {
    const std::uint64_t word = begin / 64 < bits.size() ? bits[begin / 64] : 0;
    if (word == ~std::uint64_t{0}) continue;
    const std::size_t end = std::min(begin + 64, allowed);
    for (std::size_t i = begin; i < end; ++i)
      if ((word >> (i - begin) & 1) == 0) row[i] = kNever;
  }
}

Sampler::Sampler(const SamplerOptions& options, std::size_t vocab_size) {
  check_options(options);
  QUERN_ASSERT(vocab_size > 0);
  state_ = std::make_unique<State>(options, vocab_size);
}

Sampler::~Sampler() = default;

void Sampler::set_allowed(std::size_t allowed) {
  QUERN_ASSERT(allowed > 0 && allowed <= state_->row.size());
  state_->allowed = allowed;
}

void Sampler::set_rules(TokenRules rules) {
  state_->rules = std::move(rules);
}

void Sampler::set_banned(BannedTexts banned) {
  state_->banned = std::move(banned);
}

void Sampler::set_constraint(Constraint* constraint) {
  state_->constraint = constraint;
}

void Sampler::start(std::span<const std::int32_t> ids) {
  state_->sequence.clear();
  for (const std::int32_t id : ids) state_->remember(id);
  if (state_->banned) state_->banned->restart();
  if (state_->constraint != nullptr) state_->constraint->restart();
}

std::int32_t Sampler::sample(std::span<const float> logits, std::size_t step) {
  State& s = *state_;
  QUERN_ASSERT(logits.size() == s.row.size());
  check_finite(logits.first(s.allowed), step);
  std::copy(logits.begin(), logits.end(), s.row.begin());
  s.apply_bias();
  if (s.rules) s.rules->apply(s.sequence, s.row);
  if (s.banned) s.banned->apply(s.row);
  if (s.constraint != nullptr) s.apply_constraint();
  if (!s.candidates.start(std::span<float>(s.row).first(s.allowed)))
    base::reject("model",
                 base::cat("the rules and constraints about tokens leave none at step ", step));
  Step context{s.sequence, s.random};
  for (std::size_t i = 0; i < s.n_filters; ++i) s.chain[i]->apply(s.candidates, context);
  if (s.greedy) return s.candidates.best().id;
  return s.chooser->choose(s.candidates, s.random);
}

void Sampler::accept(std::int32_t id) {
  State& s = *state_;
  s.remember(id);
  s.chooser->accept(id);
  if (s.banned) s.banned->accept(id);
  if (s.constraint != nullptr) s.constraint->accept(id);
}

bool Sampler::greedy() const {
  return state_->greedy;
}

SamplerState Sampler::state() const {
  return {state_->random.n_drawn(), state_->chooser->state};
}

void Sampler::restore(const SamplerState& state) {
  state_->random.skip_to(state.n_drawn);
  state_->chooser->state = state.chooser;
}

}  // namespace quern::sampling
