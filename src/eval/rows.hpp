// One row of logits as a distribution, and two of them compared; sums in double, in the order of the vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::eval {

struct RowScore {
  double log_sum = 0;      // log of the sum of exp(logit)
  std::int32_t best = 0;   // the first of the largest
  bool finite = true;
};
RowScore score_row(const float* logits, std::size_t n);

inline double log_probability(const RowScore& row, const float* logits, std::int32_t id) {
  return static_cast<double>(logits[id]) - row.log_sum;
}

// KL(p || q) in nats: sum over the vocabulary of p (log p - log q), not below 0.
double divergence(const RowScore& p_row, const float* p, const RowScore& q_row, const float* q, std::size_t n);

}  // namespace quern::eval
