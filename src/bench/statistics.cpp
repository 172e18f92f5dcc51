#include "bench/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace quern::bench {

namespace {

double median_of(std::span<const double> sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// P(at most k of n fair coins are heads), through logarithms: n may be thousands.
double binomial_at_most(std::size_t k, std::size_t n) {
  const auto count = static_cast<double>(n);
  double sum = 0;
  for (std::size_t i = 0; i <= k; ++i) {
    const auto x = static_cast<double>(i);
    sum += std::exp(std::lgamma(count + 1) - std::lgamma(x + 1) - std::lgamma(count - x + 1) - count * std::log(2.0));
  }
  return sum;
}

// The median is below sorted[k] with the probability that at most k samples are below the median: the narrowest
// symmetric pair of order statistics that covers enough.
Interval median_interval(std::span<const double> sorted, double confidence) {
  const std::size_t n = sorted.size();
  std::size_t k = 0;
  double coverage = 1 - 2 * binomial_at_most(0, n);
  while (k + 1 < n - 1 - k - 1) {
    const double next = 1 - 2 * binomial_at_most(k + 1, n);
    if (next < confidence) break;
    coverage = next;
    ++k;
  }
  return {sorted[k], sorted[n - 1 - k], std::max(0.0, coverage)};
}

}  // namespace

Summary summarize(std::vector<double> samples, double confidence) {
  Summary s;
  s.n = samples.size();
  if (samples.empty()) return s;
  std::sort(samples.begin(), samples.end());
  const auto n = static_cast<double>(samples.size());
  for (const double x : samples) s.mean += x / n;
  double squares = 0;
  for (const double x : samples) squares += (x - s.mean) * (x - s.mean);
  s.deviation = samples.size() > 1 ? std::sqrt(squares / (n - 1)) : 0;
  s.median = median_of(samples);
  s.interval = median_interval(samples, confidence);
  return s;
}

double drift(std::span<const double> samples) {
  if (samples.size() < 6) return 1;
  const std::size_t half = samples.size() / 2;
  std::vector<double> first(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(half));
  std::vector<double> second(samples.end() - static_cast<std::ptrdiff_t>(half), samples.end());
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  const double before = median_of(first);
  return before > 0 ? median_of(second) / before : 1;
}

PairedResult compare_pairs(std::span<const Pair> pairs, const PairedOptions& options) {
  std::vector<double> ratios;
  for (const Pair& pair : pairs)
    if (pair.mine > 0 && pair.other > 0) ratios.push_back(pair.mine / pair.other);
  PairedResult result;
  result.n = ratios.size();
  if (ratios.empty()) return result;
  const Summary s = summarize(std::move(ratios), options.confidence);
  result.ratio = s.median;
  result.interval = s.interval;
  if (result.n < options.min_pairs || s.interval.coverage < options.confidence) return result;
  if (s.interval.low > 1 + options.effect) result.outcome = Outcome::slower;
  else if (s.interval.high < 1 - options.effect) result.outcome = Outcome::faster;
  else if (s.interval.low >= 1 - options.effect && s.interval.high <= 1 + options.effect)
    result.outcome = Outcome::same;
  return result;
}

RunComparison compare_runs(const Summary& mine, const Summary& base, double scale, double effect) {
  RunComparison c;
  if (!(base.interval.low > 0) || !(mine.interval.low > 0) || !(scale > 0)) {
    c.outcome = Outcome::undecided;
    return c;
  }
  c.ratio = mine.median / (base.median * scale);
  c.low = mine.interval.low / (base.interval.high * scale);
  c.high = mine.interval.high / (base.interval.low * scale);
  if (c.high < 1 - effect) c.outcome = Outcome::slower;
  else if (c.low > 1 + effect) c.outcome = Outcome::faster;
  return c;
}

}  // namespace quern::bench
