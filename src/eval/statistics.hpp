// Means with their standard errors, and order statistics of what was collected. Sums run in the order of the
// samples, in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace quern::eval {

class Mean {
 public:
  void add(double x) {
    ++n_;
    const double d = x - mean_;  // Welford: no difference of large sums
    mean_ += d / static_cast<double>(n_);
    squares_ += d * (x - mean_);
  }
  std::size_t n() const { return n_; }
  double mean() const { return mean_; }
  double variance() const { return n_ > 1 ? squares_ / static_cast<double>(n_ - 1) : 0.0; }
  double error() const { return n_ > 0 ? std::sqrt(variance() / static_cast<double>(n_)) : 0.0; }

 private:
  std::size_t n_ = 0;
  double mean_ = 0, squares_ = 0;
};

// Value below which the share `p` of sorted samples lies, linear between neighbours (as numpy.percentile).
inline double quantile(const std::vector<float>& sorted, double p) {
  if (sorted.empty()) return 0;
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  const double rest = at - static_cast<double>(low);
  return (1 - rest) * static_cast<double>(sorted[low]) + rest * static_cast<double>(sorted[high]);
}

}  // namespace quern::eval
