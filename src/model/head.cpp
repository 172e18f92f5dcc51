#include "model/head.hpp"

#include <algorithm>
#include <cstring>

#include "model/linear.hpp"
#include "model/norm.hpp"

namespace quern::model {

namespace {

constexpr std::size_t kColumnsPerItem = 4096;

// In a buffer of its own: callers may ask for the hidden states.
Rows transformed(Step& step, const Rows& hidden) {
  if (!step.model.head.transform) return hidden;
  const HeadTransform& transform = *step.model.head.transform;
  const Rows y = step.scratch.transformed.rows(hidden.n, transform.linear.out);
  run_transform(step, transform, hidden, y);
  return y;
}

Rows scaled(Step& step, const Rows& input) {
  if (step.model.head.in_scale == 1) return input;
  const RowBuffer& buffer =
      step.model.head.transform ? step.scratch.transformed : step.scratch.normed;
  const Rows y = buffer.rows(input.n, input.width);
  for (std::size_t i = 0; i < input.n; ++i) {
    if (y.data != input.data) std::memcpy(y.row(i), input.row(i), input.width * sizeof(float));
    step.model.kernels->scale(y.row(i), step.model.head.in_scale, input.width);
  }
  return y;
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

void run_transform(Step& step, const HeadTransform& transform, const Rows& input, const Rows& output) {
  run_linear(step, input, transform.linear, output);
  if (transform.activation)
    for (std::size_t i = 0; i < output.n; ++i)
      step.model.kernels->activate(*transform.activation, output.row(i), output.width);
  if (transform.norm) normalize(step, *transform.norm, output, output);
}

void run_head(Step& step, const Rows& hidden, const Rows& logits) {
  run_linear(step, scaled(step, transformed(step, hidden)), step.model.head.logits, logits);
  finish_logits(step, logits);
}

}  // namespace quern::model
