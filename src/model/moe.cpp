#include "model/moe.hpp"

#include <algorithm>
#include <cstring>

#include "model/ffn.hpp"
#include "model/linear.hpp"
#include "model/router.hpp"

namespace quern::model {

namespace {

constexpr std::size_t kChunksPerThread = 8;  // experts differ in load

std::size_t grain_of(const Step& step, std::size_t n_items) {
  const std::size_t wanted = kChunksPerThread * step.pool.n_threads();
  return (n_items + wanted - 1) / wanted;
}

void route(Step& step, const Moe& op, const LazyRows& input) {
  MoeScratch& moe = step.scratch.moe;
  const contract::Moe& spec = *op.spec;
  const std::size_t n = input.rows.n;
  const Rows scores = moe.scores.rows(n, spec.n_experts);
  run_linear(step, input, op.router, scores);
  auto work = [&](std::size_t begin, std::size_t end, std::size_t thread) {
    float* choice = moe.choice.data() + 2 * thread * moe.router_stride;
    const RouterScratch scratch{choice, choice + moe.router_stride,
                                moe.groups.data() + thread * moe.router_stride};
    for (std::size_t t = begin; t < end; ++t)
      choose_experts(*step.model.kernels, op, scores.row(t), scratch,
                     moe.experts.data() + t * spec.top_k, moe.weights.data() + t * spec.top_k);
  };
  for_tokens(step, n, work);
}

// Rows of each expert, tokens ascending within it.
void sort_by_expert(Step& step, const Moe& op, std::size_t n_tokens) {
  MoeScratch& moe = step.scratch.moe;
  const std::size_t n_experts = op.spec->n_experts, n_slots = n_tokens * op.spec->top_k;
  std::vector<std::uint64_t>& loads = moe.loads[op.index];
  std::fill_n(moe.first_row.begin(), n_experts + 1, 0U);
  for (std::size_t slot = 0; slot < n_slots; ++slot) ++moe.first_row[moe.experts[slot] + 1];
  moe.active.clear();
  for (std::size_t e = 0; e < n_experts; ++e) {
    loads[e] += moe.first_row[e + 1];
    if (moe.first_row[e + 1] != 0) moe.active.push_back(static_cast<std::uint32_t>(e));
    moe.first_row[e + 1] += moe.first_row[e];
  }
  for (std::size_t slot = 0; slot < n_slots; ++slot) {
    const std::uint32_t row = moe.first_row[moe.experts[slot]]++;
    moe.row_of[slot] = row;
    moe.token_of[row] = static_cast<std::uint32_t>(slot / op.spec->top_k);
  }
  // The loop above moved each start to the next expert's.
  for (std::size_t e = n_experts; e > 0; --e) moe.first_row[e] = moe.first_row[e - 1];
  moe.first_row[0] = 0;
}

// The experts' input in row order, as they read it. A single token is read where it lies.
Rows gather(Step& step, const Moe& op, const Rows& input) {
  const MoeScratch& moe = step.scratch.moe;
  if (input.n == 1) {
    make_rows(step, input, moe.quantized, op.groups_in);
    return input;
  }
  const Rows rows = moe.input.rows(input.n * op.spec->top_k, input.width);
  auto copy = [&](std::size_t row) {
    std::memcpy(rows.row(row), input.row(moe.token_of[row]), input.width * sizeof(float));
  };
  make_rows(step, {rows, copy}, moe.quantized, op.groups_in);
  return rows;
}

// Rows [begin, end) of `all`.
Rows slice(const Rows& all, std::size_t begin, std::size_t end) {
  return {all.row(begin), end - begin, all.width, all.stride};
}

// work(expert, first panel, end panel, thread) over panels [0, n_panels) of every expert that has
// rows.
template <class F>
void for_expert_panels(Step& step, std::size_t n_panels, F&& work) {
  const MoeScratch& moe = step.scratch.moe;
  auto items = [&](std::size_t begin, std::size_t end, std::size_t thread) {
    while (begin < end) {
      const std::size_t panel = begin % n_panels;
      const std::size_t n = std::min(end - begin, n_panels - panel);
      work(moe.active[begin / n_panels], panel, panel + n, thread);
      begin += n;
    }
  };
  const std::size_t n_items = moe.active.size() * n_panels;
  step.pool.parallel_for(n_items, grain_of(step, n_items), items);
}

// up = act(gate) * up of every row, in one pass over the panels of both matrices.
void run_inner(Step& step, const Moe& op, const Rows& input, const Rows& gate, const Rows& up) {
  const MoeScratch& moe = step.scratch.moe;
  const bool one_token = input.n == 1;
  const auto work = [&](std::size_t e, std::size_t first, std::size_t end, std::size_t thread) {
    const Ffn& expert = op.experts[e];
    const std::size_t begin = moe.first_row[e], n = moe.first_row[e + 1] - begin;
    const Piece piece{first, end, one_token ? 0 : begin, n};
    const Rows expert_gate = slice(gate, begin, begin + n), expert_up = slice(up, begin, begin + n);
    if (op.spec->expert.gated)
      run_piece(step, {input, moe.quantized}, expert.gate, piece, expert_gate, thread);
    run_piece(step, {input, moe.quantized}, expert.up, piece, expert_up, thread);
    const std::size_t column = first * quant::kPanelRows;
    const std::size_t width = std::min(end * quant::kPanelRows, up.width) - column;
    for (std::size_t i = 0; i < n; ++i)
      activate_row(*step.model.kernels, expert, expert_gate.row(i) + column,
                   expert_up.row(i) + column, width);
  };
  for_expert_panels(step, quant::n_panels(op.spec->expert.d_ff), work);
}

void run_down(Step& step, const Moe& op, const Rows& up, const Rows& out) {
  const MoeScratch& moe = step.scratch.moe;
  const auto work = [&](std::size_t e, std::size_t first, std::size_t end, std::size_t thread) {
    const std::size_t begin = moe.first_row[e], n = moe.first_row[e + 1] - begin;
    run_piece(step, {up, moe.quantized}, op.experts[e].down, {first, end, begin, n},
              slice(out, begin, begin + n), thread);
  };
  for_expert_panels(step, quant::n_panels(out.width), work);
}

// out = (gate *) shared(x), or zeros.
void run_shared(Step& step, const Moe& op, const Rows& input, const Rows& out) {
  run_ffn(step, *op.shared, input, out);
  if (!op.shared_router) return;
  const Rows scores = step.scratch.moe.shared_scores.rows(input.n, 1);
  run_linear(step, input, *op.shared_router, scores);
  for (std::size_t t = 0; t < input.n; ++t) {
    step.model.kernels->sigmoid(scores.row(t), 1);
    step.model.kernels->scale(out.row(t), scores.row(t)[0], out.width);
  }
}

// out = sum over the token's slots, experts ascending, of weight * row, then + the shared expert's
// output, which is there already.
void combine(Step& step, const Moe& op, const Rows& rows, const Rows& out) {
  const MoeScratch& moe = step.scratch.moe;
  const kernels::Kernels& kernels = *step.model.kernels;
  const std::size_t top_k = op.spec->top_k;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t t = begin; t < end; ++t) {
      const std::uint32_t* row = moe.row_of.data() + t * top_k;
      const float* weight = moe.weights.data() + t * top_k;
      float* sum = rows.row(row[0]);
      kernels.scale(sum, weight[0], out.width);
      for (std::size_t k = 1; k < top_k; ++k)
        kernels.scaled_add(sum, 1.0F, rows.row(row[k]), weight[k], out.width);
      if (op.shared)
        kernels.add(out.row(t), sum, out.width);
      else
        std::memcpy(out.row(t), sum, out.width * sizeof(float));
    }
  };
  for_tokens(step, out.n, work);
}

}  // namespace

void run_moe(Step& step, const Moe& op, const LazyRows& lazy, const Rows& out) {
  const Rows& input = lazy.rows;
  if (input.n == 0) return;
  MoeScratch& moe = step.scratch.moe;
  const std::size_t n_rows = input.n * op.spec->top_k;
  route(step, op, lazy);
  sort_by_expert(step, op, input.n);
  if (op.shared) run_shared(step, op, input, out);
  step.begins(Part::other_op);
  const Rows gate = moe.gate.rows(n_rows, op.spec->expert.d_ff);
  const Rows up = moe.up.rows(n_rows, op.spec->expert.d_ff);
  const Rows rows = moe.out.rows(n_rows, out.width);
  run_inner(step, op, gather(step, op, input), gate, up);
  make_rows(step, up, moe.quantized, op.groups_down);
  run_down(step, op, up, rows);
  combine(step, op, rows, out);
}

}  // namespace quern::model
