#include "eval/rows.hpp"

#include <algorithm>
#include <cmath>

namespace quern::eval {

RowScore score_row(const float* logits, std::size_t n) {
  RowScore row;
  std::size_t best = 0;
  for (std::size_t i = 0; i < n; ++i) {
    row.finite = row.finite && std::isfinite(logits[i]);
    if (logits[i] > logits[best]) best = i;
  }
  const auto largest = static_cast<double>(logits[best]);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(logits[i]) - largest);
  row.best = static_cast<std::int32_t>(best);
  row.log_sum = largest + std::log(sum);
  return row;
}

double divergence(const RowScore& p_row, const float* p, const RowScore& q_row, const float* q, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double log_p = static_cast<double>(p[i]) - p_row.log_sum;
    sum += std::exp(log_p) * (log_p - (static_cast<double>(q[i]) - q_row.log_sum));
  }
  return std::max(sum, 0.0);
}

}  // namespace quern::eval
