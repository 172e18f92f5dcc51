#include "model/head.hpp"

#include <algorithm>
#include <cstring>

#include "model/linear.hpp"

namespace quern::model {

namespace {

constexpr std::size_t kColumnsPerItem = 4096;

// hidden stays as it is (callers may ask for it): the scaled copy goes to the branch input buffer.
Rows scaled_input(Step& step, const Rows& hidden) {
  if (step.model.head.in_scale == 1) return hidden;
  const Rows scaled = step.scratch.normed.rows(hidden.n, hidden.width);
  for (std::size_t i = 0; i < hidden.n; ++i) {
    std::memcpy(scaled.row(i), hidden.row(i), hidden.width * sizeof(float));
    step.model.kernels->scale(scaled.row(i), step.model.head.in_scale, hidden.width);
  }
  return scaled;
}

void finish_logits(Step& step, const Rows& logits) {
  const Head& head = step.model.head;
  if (head.logit_scale == 1 && head.softcap == 0) return;
  const std::size_t per_row = (logits.width + kColumnsPerItem - 1) / kColumnsPerItem;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t item = begin; item < end; ++item) {
      const std::size_t column = item % per_row * kColumnsPerItem;
      const std::size_t n = std::min(kColumnsPerItem, logits.width - column);
      float* values = logits.row(item / per_row) + column;
      if (head.logit_scale != 1) step.model.kernels->scale(values, head.logit_scale, n);
      if (head.softcap != 0) step.model.kernels->softcap(values, head.softcap, n);
    }
  };
  step.pool.parallel_for(logits.n * per_row, 1, work);
}

}  // namespace

void run_head(Step& step, const Rows& hidden, const Rows& logits) {
  run_linear(step, scaled_input(step, hidden), step.model.head.logits, logits);
  finish_logits(step, logits);
}

}  // namespace quern::model
