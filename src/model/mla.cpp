#include "model/mla.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/round_up.hpp"
#include "model/indexer.hpp"
#include "model/linear.hpp"

namespace quern::model {

using kernels::kBlockTokens;

namespace {

struct Projections {
  Rows q;   // [tokens, n_heads * (d_nope + d_rope)]
  Rows kv;  // [tokens, kv_rank + d_rope]
};

// Everything that is made of the input; the indexer's parts too.
Projections project(Step& step, const Mla& op, const LazyRows& input, const IndexRows& index) {
  const contract::Mla& spec = *op.spec;
  const std::size_t n = input.rows.n;
  const Projections result{step.scratch.q.rows(n, spec.n_heads * (spec.d_nope + spec.d_rope)),
                           step.scratch.mla.kv.rows(n, spec.kv_rank + spec.d_rope)};
  if (!spec.q_rank) {
    const LinearJob jobs[] = {{&op.q, result.q}, {&op.kv_a, result.kv}};
    run_linears(step, input, jobs);
    return result;
  }
  const Rows q_a = step.scratch.mla.q_a.rows(n, *spec.q_rank);
  const std::size_t n_jobs = op.indexer ? 4 : 2;
  const LinearJob jobs[] = {{&op.q_a, q_a},
                            {&op.kv_a, result.kv},
                            {op.indexer ? &op.indexer->k : nullptr, index.k},
                            {op.indexer ? &op.indexer->weights : nullptr, index.weights}};
  run_linears(step, input, std::span<const LinearJob>(jobs).first(n_jobs));
  auto norm_row = [&](std::size_t t) {
    if (op.q_norm) step.model.kernels->norm(op.q_norm->args, q_a.row(t), q_a.row(t));
  };
  const LinearJob up[] = {{&op.q_b, result.q}, {op.indexer ? &op.indexer->q : nullptr, index.q}};
  run_linears(step, {q_a, norm_row}, std::span<const LinearJob>(up).first(op.indexer ? 2 : 1));
  return result;
}

void rotate(const Step& step, std::size_t rope, std::size_t token, float* x) {
  step.model.kernels->rope(x, step.positions.cosine(rope, token), step.positions.sine(rope, token),
                           step.positions.half(rope),
                           step.model.ropes[rope]->layout == contract::RopeLayout::pairs);
}

// Rotated parts at their positions; the latent row into the cache.
void place(Step& step, const Mla& op, const Projections& rows) {
  const contract::Mla& spec = *op.spec;
  const std::size_t width = spec.d_nope + spec.d_rope;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t t = begin; t < end; ++t) {
      for (std::size_t h = 0; h < spec.n_heads; ++h)
        rotate(step, op.rope, t, rows.q.row(t) + h * width + spec.d_nope);
      float* latent = rows.kv.row(t);
      step.model.kernels->norm(op.kv_norm.args, latent, latent);
      rotate(step, op.rope, t, latent + spec.kv_rank);
      const TokenPlace& token = step.tokens[t];
      step.model.kernels->store_kv(
          step.cache.layout(op.latent.cache_layer), latent + spec.kv_rank, latent,
          step.cache.block(op.latent.cache_layer, token.cache_sequence, 0, token.cache_row),
          token.cache_row % kBlockTokens);
    }
  };
  for_tokens(step, rows.q.n, work);
}

// work(head, first token, number of tokens, thread) in blocks of kHeadTokens tokens.
template <class F>
void for_heads(Step& step, std::size_t n_heads, std::size_t n_tokens, F&& work) {
  const std::size_t n_blocks = (n_tokens + kHeadTokens - 1) / kHeadTokens;
  auto items = [&](std::size_t begin, std::size_t end, std::size_t thread) {
    for (std::size_t item = begin; item < end; ++item) {
      const std::size_t first = item % n_blocks * kHeadTokens;
      work(item / n_blocks, first, std::min(kHeadTokens, n_tokens - first), thread);
    }
  };
  const std::size_t n_items = n_heads * n_blocks, threads = 4 * step.pool.n_threads();
  step.pool.parallel_for(n_items, (n_items + threads - 1) / threads, items);
}

Rows part(const Rows& rows, std::size_t first, std::size_t n, std::size_t column,
          std::size_t width) {
  return {rows.row(first) + column, n, width, rows.stride};
}

// q -> absorbed [tokens, n_heads * (kv_rank + d_rope)]: what meets a latent row.
void absorb(Step& step, const Mla& op, const Rows& q, const Rows& absorbed) {
  const contract::Mla& spec = *op.spec;
  const std::size_t width = spec.d_nope + spec.d_rope, row = spec.kv_rank + spec.d_rope;
  const auto work = [&](std::size_t head, std::size_t first, std::size_t n, std::size_t thread) {
    const Rows from = part(q, first, n, head * width, spec.d_nope);
    const Rows to = part(absorbed, first, n, head * row, spec.kv_rank);
    op.transposed({op.k_b.weight->bytes.data(), op.k_b.panel_bytes, spec.kv_rank,
                   head * spec.d_nope, (head + 1) * spec.d_nope, n, from.data, from.stride, to.data,
                   to.stride, step.scratch.mla.product[thread].data()});
    for (std::size_t t = 0; t < n; ++t)
      std::memcpy(to.row(t) + spec.kv_rank, from.row(t) + spec.d_nope, spec.d_rope * sizeof(float));
  };
  for_heads(step, spec.n_heads, q.n, work);
}

// Weighted sums of latents [tokens, n_heads * kv_rank] -> values [tokens, n_heads * d_v].
void raise(Step& step, const Mla& op, const Rows& latents, const Rows& attended) {
  const contract::Mla& spec = *op.spec;
  const auto work = [&](std::size_t head, std::size_t first, std::size_t n, std::size_t thread) {
    multiply_rows(op.v_b, head * spec.d_v, spec.d_v,
                  part(latents, first, n, head * spec.kv_rank, spec.kv_rank),
                  part(attended, first, n, head * spec.d_v, spec.d_v),
                  step.scratch.mla.product[thread].data());
  };
  for_heads(step, spec.n_heads, latents.n, work);
}

void attend_absorbed(Step& step, const Mla& op, const Rows& q, const Selection* selection,
                     const Rows& attended) {
  const contract::Mla& spec = *op.spec;
  const Rows absorbed =
      step.scratch.mla.absorbed.rows(q.n, spec.n_heads * (spec.kv_rank + spec.d_rope));
  const Rows latents = step.scratch.mla.latents.rows(q.n, spec.n_heads * spec.kv_rank);
  absorb(step, op, q, absorbed);
  attend(step, op.latent, absorbed, latents, selection);
  raise(step, op, latents, attended);
}

bool expands(const Step& step, const Mla& op) {
  const std::size_t least = expanded_from(*op.spec);
  return !step.deterministic && std::all_of(step.runs.begin(), step.runs.end(),
                                            [&](const Run& run) { return run.n_tokens >= least; });
}

}  // namespace

std::size_t expanded_from(const contract::Mla& spec) {
  // Multiplications of a head: absorbed 2 kv_rank + d_rope a query and key; expanded d_nope +
  // d_rope + d_v, and kv_rank (d_nope + d_v) once a key.
  const std::size_t absorbed = 2 * spec.kv_rank, expanded = spec.d_nope + spec.d_v;
  if (absorbed <= expanded) return SIZE_MAX;
  return spec.kv_rank * expanded / (absorbed - expanded) + 1;
}

std::size_t head_product_floats(std::size_t n_rows) {
  const std::size_t columns = base::round_up(n_rows, quant::kPanelRows) + quant::kPanelRows;
  return std::max(kHeadTokens * columns, kernels::transposed_scratch_floats(n_rows));
}

void multiply_rows(const Linear& linear, std::size_t first_row, std::size_t n_rows,
                   const Rows& input, const Rows& out, float* memory) {
  const std::size_t first_panel = first_row / quant::kPanelRows;
  const std::size_t skipped = first_row % quant::kPanelRows;
  kernels::MatmulArgs args{};
  args.weights = linear.weight->bytes.data() + first_panel * linear.panel_bytes;
  args.panel_bytes = linear.panel_bytes;
  args.columns = linear.in;
  args.end_panel = quant::n_panels(skipped + n_rows);
  args.x_stride = input.stride;
  args.out = memory;
  args.out_stride = args.end_panel * quant::kPanelRows;
  for (std::size_t first = 0; first < input.n; first += kHeadTokens) {
    args.n_tokens = std::min(kHeadTokens, input.n - first);
    args.x = input.row(first);
    linear.matmul(args);
    for (std::size_t t = 0; t < args.n_tokens; ++t)
      std::memcpy(out.row(first + t), memory + t * args.out_stride + skipped,
                  n_rows * sizeof(float));
  }
}

void run_mla(Step& step, const Mla& op, const LazyRows& input, const Rows& out) {
  const contract::Mla& spec = *op.spec;
  const std::size_t n = input.rows.n;
  const IndexRows index = op.indexer ? index_rows(step, *op.indexer, n) : IndexRows{};
  const Projections rows = project(step, op, input, index);
  place(step, op, rows);
  Selection chosen{};
  const Selection* selection =
      op.indexer && select_keys(step, *op.indexer, index, chosen) ? &chosen : nullptr;
  const Rows attended = step.scratch.attended.rows(n, spec.n_heads * spec.d_v);
  if (expands(step, op))
    attend_expanded(step, op, rows.q, selection, attended);
  else
    attend_absorbed(step, op, rows.q, selection, attended);
  run_linear(step, attended, op.o, out);
}

}  // namespace quern::model
