#include "sampling/chooser.hpp"

#include <cmath>

namespace quern::sampling {

namespace {

// A place in the list with the probability of its weight.
std::size_t draw(const Candidates::Weights& weights, Random& random) {
  double left = random.uniform() * weights.total;
  for (std::size_t i = 0; i < weights.each.size(); ++i) {
    left -= weights.each[i];
    if (left < 0) return i;
  }
  return weights.each.size() - 1;
}

class Draw : public Chooser {
 public:
  std::int32_t choose(Candidates& candidates, Random& random) override {
    if (candidates.is_row()) return candidates.id_at(random.uniform());
    const std::size_t place = draw(candidates.weights(), random);
    return candidates.list()[place].id;
  }
};

// Both versions hold the surprise of the chosen tokens near tau (arXiv 2007.14966). mu follows at
// once, as the peers' does.
class Mirostat : public Chooser {
 public:
  explicit Mirostat(const SamplerOptions& o) : tau_(o.mirostat_ent), eta_(o.mirostat_lr) {
    state.mu = 2 * tau_;
  }
  std::int32_t choose(Candidates& candidates, Random& random) override {
    truncate(candidates);
    const Candidates::Weights weights = candidates.weights();
    const std::size_t place = draw(weights, random);
    const double surprise = -std::log2(weights.each[place] / weights.total);
    state.mu -= eta_ * (surprise - tau_);
    return candidates.list()[place].id;
  }

 protected:
  virtual void truncate(Candidates& candidates) = 0;

 private:
  double tau_, eta_;
};

// Version 1: top-k with k from Zipf's exponent, estimated from the 100 best.
class MirostatOne : public Mirostat {
 public:
  MirostatOne(const SamplerOptions& o, std::size_t vocab_size)
      : Mirostat(o), vocab_size_(static_cast<double>(vocab_size)) {}

 private:
  void truncate(Candidates& candidates) override {
    constexpr std::size_t kBest = 100;
    const std::span<const Candidate> list = candidates.top(kBest);
    double products = 0, squares = 0;
    for (std::size_t i = 0; i + 1 < list.size(); ++i) {
      const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
      products += t * ((list[i].logit - double{list[i + 1].logit}) / candidates.temperature());
      squares += t * t;
    }
    const double s = products / squares, epsilon = s - 1;
    const double k = std::pow(
        epsilon * std::exp2(state.mu) / (1 - std::pow(vocab_size_, -epsilon)), 1 / s);
    const auto most = static_cast<double>(candidates.size());
    candidates.keep_best(k >= 1 ? static_cast<std::size_t>(std::min(k, most)) : 1);
  }

  double vocab_size_;
};

// Version 2: no token with more surprise than mu.
class MirostatTwo : public Mirostat {
 public:
  using Mirostat::Mirostat;

 private:
  void truncate(Candidates& candidates) override {
    const double best = candidates.best().logit;
    const double log_least = std::log(candidates.total_weight()) - state.mu * std::log(2.0);
    if (log_least > 0) return candidates.keep_best(1);  // even the best is too surprising
    candidates.keep_at_least(best + log_least * candidates.temperature());
  }
};

// Prefers tokens whose probability is near a target, which moves against what was chosen so far.
class AdaptiveP : public Chooser {
 public:
  AdaptiveP(const SamplerOptions& o, std::size_t vocab_size)
      : target_(std::clamp(o.adaptive_target, 0.0, 1.0)), decay_(o.adaptive_decay) {
    state.weighted_sum = target_ / (1 - decay_);
    state.total_weight = 1 / (1 - decay_);
    probabilities_.reserve(vocab_size);
  }

  std::int32_t choose(Candidates& candidates, Random& random) override {
    constexpr double kWidth = 0.3, kPeak = 5, kSharpness = 10;
    const Candidates::Weights before = candidates.weights();
    probabilities_.clear();
    for (const double weight : before.each) probabilities_.push_back(weight / before.total);
    const double target =
        std::clamp(2 * target_ - state.weighted_sum / state.total_weight, 0.0, 1.0);
    candidates.change_all([&](std::size_t i) {
      const double distance = std::fabs(probabilities_[i] - target) / kWidth;
      return kPeak - kSharpness * distance * distance / (1 + distance);
    });
    const std::size_t place = draw(candidates.weights(), random);
    chosen_ = candidates.list()[place].id;
    chosen_probability_ = probabilities_[place];
    return chosen_;
  }

  void accept(std::int32_t id) override {
    if (id == chosen_) {
      state.weighted_sum = chosen_probability_ + decay_ * state.weighted_sum;
      state.total_weight = 1 + decay_ * state.total_weight;
    }
    chosen_ = -1;
  }

 private:
  double target_, decay_;
  std::vector<double> probabilities_;
  std::int32_t chosen_ = -1;
  double chosen_probability_ = 0;
};

}  // namespace

std::unique_ptr<Chooser> make_chooser(const SamplerOptions& o, std::size_t vocab_size) {
  if (o.mirostat == 1) return std::make_unique<MirostatOne>(o, vocab_size);
  if (o.mirostat == 2) return std::make_unique<MirostatTwo>(o);
  if (o.adaptive_target >= 0) return std::make_unique<AdaptiveP>(o, vocab_size);
  return std::make_unique<Draw>();
}

}  // namespace quern::sampling
