// Temperature, fixed or following the entropy; and xtc, which takes the most probable tokens away.
#include <cmath>

#include "sampling/filter.hpp"

namespace quern::sampling {

namespace {

void scale(Candidates& candidates, double temperature) {
  if (temperature <= 0) return candidates.keep_best(1);
  candidates.set_temperature(candidates.temperature() * temperature);
}

class Temperature : public Filter {
 public:
  explicit Temperature(double temperature) : temperature_(temperature) {}
  void apply(Candidates& candidates, Step&) override { scale(candidates, temperature_); }

 private:
  double temperature_;
};

// Between temperature - range and temperature + range: low where the model is sure, high where the
// entropy is near the largest that so many candidates can have (arXiv 2309.02772).
class DynamicTemperature : public Filter {
 public:
  DynamicTemperature(double temperature, double range, double exponent)
      : low_(std::max(0.0, temperature - range)), high_(temperature + range), exponent_(exponent) {}

  void apply(Candidates& candidates, Step&) override {
    const Candidates::Surprise surprise = candidates.surprise();
    if (surprise.n <= 1) return;
    const double entropy = std::log(surprise.total) - surprise.weighted / surprise.total;
    const double most = std::log(static_cast<double>(surprise.n));
    const double part = std::pow(std::clamp(entropy / most, 0.0, 1.0), exponent_);
    scale(candidates, std::isfinite(part) ? low_ + (high_ - low_) * part : high_);
  }

 private:
  double low_, high_, exponent_;
};

// With a probability, all tokens above the threshold but the least of them are taken away.
class Xtc : public Filter {
 public:
  Xtc(double probability, double threshold, std::size_t min_keep)
      : probability_(probability), threshold_(threshold), min_keep_(min_keep) {}

  void apply(Candidates& candidates, Step& step) override {
    const bool few = threshold_ * static_cast<double>(Candidates::kMostTop) > 1;  // so many can be above it
    if (few && candidates.is_row() && min_keep_ <= 1) {
      if (step.random.uniform() <= probability_) candidates.leave_least_of_top(threshold_);
      return;
    }
    const std::span<const Candidate> list = candidates.list();
    if (list.size() < 2 || step.random.uniform() > probability_) return;
    const Candidates::Weights weights = candidates.weights();
    const double least = threshold_ * weights.total;
    std::size_t n_above = 0;
    Candidate last = candidates.best();  // of those above
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (weights.each[i] < least) continue;
      ++n_above;
      if (before(last, list[i])) last = list[i];
    }
    if (n_above < 2 || list.size() - (n_above - 1) < min_keep_) return;
    candidates.keep_if([&](std::size_t i) { return !before(list[i], last); });
  }
  bool keeps_best() const override { return false; }

 private:
  double probability_, threshold_;
  std::size_t min_keep_;
};

}  // namespace

std::unique_ptr<Filter> make_temperature(const SamplerOptions& o) {
  if (o.dynatemp_range > 0)
    return std::make_unique<DynamicTemperature>(o.temperature, o.dynatemp_range,
                                                o.dynatemp_exponent);
  if (o.temperature == 1) return nullptr;
  return std::make_unique<Temperature>(o.temperature);
}

std::unique_ptr<Filter> make_xtc(const SamplerOptions& o) {
  if (o.xtc_probability <= 0 || o.xtc_threshold > 0.5) return nullptr;
  return std::make_unique<Xtc>(o.xtc_probability, o.xtc_threshold, o.min_keep);
}

}  // namespace quern::sampling
