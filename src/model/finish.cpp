#include "model/finish.hpp"

#include <cstring>

#include "base/error.hpp"
#include "contract/tensors.hpp"
#include "model/head.hpp"
#include "model/norm.hpp"

namespace quern::model {

namespace {

void observe(const Step& step, std::string_view name, const Rows& rows) {
  if (step.tap != nullptr) (*step.tap)(name, rows.data, rows.n, rows.width, rows.stride);
}

// Where the step has its i-th wanted token: it may have dropped the others (Step::keep_wanted).
std::size_t row_of(const Step& step, const Placement& placement, std::size_t i) {
  return step.n_tokens() == placement.wanted.size() ? i : placement.wanted[i];
}

// The last token that is none of the pads at the end; the first where all are pads.
Rows without_pads(const Step& step, const Placement& placement, const HiddenRange& range, Rows states) {
  const std::optional<std::size_t>& pad = step.model.head.pool_pad;
  const auto is_pad = [&](std::size_t row) {
    return static_cast<std::size_t>(step.tokens[row_of(step, placement, range.first + row)].id) == pad;
  };
  while (states.n > 1 && is_pad(states.n - 1)) --states.n;
  return states;
}

// One row per slice: what a head with a pool reads.
Rows pooled_rows(Step& step, const Placement& placement, const Rows& hidden) {
  const Rows pooled = step.scratch.pooled.rows(placement.ranges.size(), hidden.width);
  for (std::size_t i = 0; i < pooled.n; ++i) {
    const HiddenRange& range = placement.ranges[i];
    const Rows states{hidden.row(range.first), range.n, hidden.width, hidden.stride};
    pool_rows(*step.model.kernels, *step.model.head.pool,
              without_pads(step, placement, range, states), pooled.row(i));
  }
  return pooled;
}

}  // namespace

Outputs finish(Step& step, const Placement& placement, bool logits) {
  const std::size_t d_model = step.model.contract.d_model;
  const Rows stream = step.scratch.stream.rows(step.n_tokens(), d_model);
  const Rows hidden = step.scratch.hidden.rows(placement.wanted.size(), d_model);
  for (std::size_t i = 0; i < hidden.n; ++i)
    std::memcpy(hidden.row(i), stream.row(row_of(step, placement, i)), d_model * sizeof(float));
  if (step.stack.final_norm) normalize(step, *step.stack.final_norm, hidden, hidden);
  observe(step, "hidden", hidden);
  const Head& head = step.model.head;
  if (head.logits.weight == nullptr || !logits) return {hidden.n, 0};
  const Rows input = head.pool ? pooled_rows(step, placement, hidden) : hidden;
  const Rows outputs = step.scratch.logits.rows(input.n, head.logits.out);
  step.begins(Part::head);
  run_head(step, input, outputs);
  observe(step, "logits", outputs);
  return {hidden.n, outputs.n};
}

void finish_encoder(Step& step) {
  const std::size_t d_model = step.model.contract.d_model;
  const Rows stream = step.scratch.stream.rows(step.n_tokens(), d_model);
  const Rows encoded = step.scratch.encoded.rows(stream.n, d_model);
  if (step.stack.final_norm)
    normalize(step, *step.stack.final_norm, stream, encoded);
  else
    std::memcpy(encoded.data, stream.data, stream.n * stream.stride * sizeof(float));
  observe(step, "encoded", encoded);
}

void pool_rows(const kernels::Kernels& kernels, contract::Pool mode, const Rows& states,
               float* out) {
  QUERN_ASSERT(states.n > 0);
  const std::size_t row = mode == contract::Pool::last ? states.n - 1 : 0;
  std::memcpy(out, states.row(row), states.width * sizeof(float));
  if (mode != contract::Pool::mean) return;
  for (std::size_t i = 1; i < states.n; ++i) kernels.add(out, states.row(i), states.width);
  kernels.scale(out, 1.0F / static_cast<float>(states.n), states.width);
}

void finish_vector(Step& step, contract::Pool mode, const Rows& states, float* out) {
  const std::vector<HeadTransform>& layers = step.model.pooling;
  if (layers.empty()) return pool_rows(*step.model.kernels, mode, states, out);
  const auto buffer = [&](std::size_t i, std::size_t width) {
    const Rows both = step.scratch.vector.rows(2, width);
    return Rows{both.row(i % 2), 1, width, both.stride};
  };
  Rows vector = buffer(0, states.width);
  pool_rows(*step.model.kernels, mode, states, vector.row(0));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Rows next = buffer(i + 1, layers[i].linear.out);
    run_transform(step, layers[i], vector, next);
    vector = next;
  }
  std::memcpy(out, vector.row(0), vector.width * sizeof(float));
}

}  // namespace quern::model
