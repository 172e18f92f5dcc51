// The samplers that only leave fewer candidates: top_k, top_p, min_p, typical, top_n_sigma.
#include <algorithm>
#include <cmath>

#include "sampling/filter.hpp"
#include "sampling/mass_head.hpp"

namespace quern::sampling {

namespace {

class TopK : public Filter {
 public:
  explicit TopK(std::size_t k) : k_(k) {}
  void apply(Candidates& candidates, Step&) override { candidates.keep_best(k_); }

 private:
  std::size_t k_;
};

// The best tokens that together have a probability of p.
class TopP : public Filter {
 public:
  TopP(double p, std::size_t min_keep, std::size_t vocab_size)
      : p_(p), min_keep_(min_keep), head_(vocab_size) {}

  void apply(Candidates& candidates, Step&) override {
    const double total = candidates.total_weight();
    candidates.keep_heavy(p_ * total, min_keep_);
    Candidates::Weights weights = candidates.weights();
    weights.total = total;
    if (candidates.sorted()) {
      double sum = 0;
      std::size_t n = 0;
      while (n < weights.each.size() && (sum < p_ * weights.total || n < min_keep_))
        sum += weights.each[n++];
      candidates.keep_best(n);
      return;
    }
    const std::span<const Candidate> list = candidates.list();
    const double best = candidates.best().logit, scale = 1 / candidates.temperature();
    head_.keep(candidates, weights, {p_, false, min_keep_},
               [&](std::size_t i) { return (best - list[i].logit) * scale; });
  }

 private:
  double p_;
  std::size_t min_keep_;
  MassHead head_;
};

// Tokens at least p times as probable as the best.
class MinP : public Filter {
 public:
  MinP(double p, std::size_t min_keep) : log_p_(std::log(p)), min_keep_(min_keep) {}

  void apply(Candidates& candidates, Step&) override {
    const double least = candidates.best().logit + candidates.temperature() * log_p_;
    if (min_keep_ > 1) {
      std::size_t n = 0;
      for (const Candidate& c : candidates.list()) n += double{c.logit} >= least ? 1 : 0;
      if (n < min_keep_) return candidates.keep_best(min_keep_);
    }
    candidates.keep_at_least(least);
  }

 private:
  double log_p_;
  std::size_t min_keep_;
};

// Tokens whose surprise is nearest to the entropy, up to a probability above p (arXiv 2202.00666).
// Surprise less entropy is the mean log-weight less the token's.
class Typical : public Filter {
 public:
  Typical(double p, std::size_t min_keep, std::size_t vocab_size)
      : p_(p), min_keep_(min_keep), head_(vocab_size) {}

  void apply(Candidates& candidates, Step&) override {
    const Candidates::Weights weights = candidates.weights();
    const std::span<const Candidate> list = candidates.list();
    const double best = candidates.best().logit, scale = 1 / candidates.temperature();
    const auto log_weight = [&](std::size_t i) { return (list[i].logit - best) * scale; };
    double sums[4] = {};
    for (std::size_t i = 0; i < list.size(); ++i) sums[i % 4] += weights.each[i] * log_weight(i);
    const double mean = ((sums[0] + sums[1]) + (sums[2] + sums[3])) / weights.total;
    head_.keep(candidates, weights, {p_, true, min_keep_},
               [&](std::size_t i) { return std::fabs(mean - log_weight(i)); });
  }
  bool keeps_best() const override { return false; }

 private:
  double p_;
  std::size_t min_keep_;
  MassHead head_;
};

// Tokens within n standard deviations of the best logit (arXiv 2411.07641).
class TopNSigma : public Filter {
 public:
  explicit TopNSigma(double n) : n_(n) {}

  void apply(Candidates& candidates, Step&) override {
    const Candidates::Distances of = candidates.distances();
    const double variance = std::max(of.mean_square - of.mean * of.mean, 0.0);
    candidates.keep_at_least(candidates.best().logit - n_ * std::sqrt(variance));
  }

 private:
  double n_;
};

}  // namespace

std::unique_ptr<Filter> make_top_k(const SamplerOptions& o) {
  if (o.top_k == 0) return nullptr;
  return std::make_unique<TopK>(o.top_k);
}

std::unique_ptr<Filter> make_top_p(const SamplerOptions& o, std::size_t vocab_size) {
  if (o.top_p >= 1) return nullptr;
  return std::make_unique<TopP>(o.top_p, std::max<std::size_t>(o.min_keep, 1), vocab_size);
}

std::unique_ptr<Filter> make_min_p(const SamplerOptions& o) {
  if (o.min_p <= 0) return nullptr;
  return std::make_unique<MinP>(o.min_p, std::max<std::size_t>(o.min_keep, 1));
}

std::unique_ptr<Filter> make_typical(const SamplerOptions& o, std::size_t vocab_size) {
  if (o.typical_p >= 1) return nullptr;
  return std::make_unique<Typical>(o.typical_p, std::max<std::size_t>(o.min_keep, 1), vocab_size);
}

std::unique_ptr<Filter> make_top_n_sigma(const SamplerOptions& o) {
  if (o.top_n_sigma <= 0) return nullptr;
  return std::make_unique<TopNSigma>(o.top_n_sigma);
}

}  // namespace quern::sampling
