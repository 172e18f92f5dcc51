#include "model/nsa.hpp"

#include <array>

#include "model/linear.hpp"

namespace quern::model {

using kernels::kBlockTokens;

namespace {

constexpr std::size_t kBranches =
    3;  // compress, select, window: the order of gates and of Nsa::branches

void project(Step& step, const Nsa& op, const LazyRows& input, const Rows& q, const Rows& gates) {
  const NsaScratch& memory = step.scratch.nsa;
  const std::size_t k_width = op.spec->n_kv_heads * op.spec->d_k,
                    v_width = op.spec->n_kv_heads * op.spec->d_v;
  const std::size_t n = input.rows.n;
  std::array<LinearJob, 2 + 2 * kBranches> jobs;
  jobs[0] = {&op.q, q};
  jobs[1] = {&op.gates, gates};
  for (std::size_t b = 0; b < kBranches; ++b) {
    jobs[2 + 2 * b] = {&op.branches[b].k, memory.k[b].rows(n, k_width)};
    jobs[3 + 2 * b] = {&op.branches[b].v, memory.v[b].rows(n, v_width)};
  }
  run_linears(step, input, jobs);
}

void rotate_heads(const Step& step, const Nsa& op, std::size_t token, float* x,
                  std::size_t n_heads) {
  if (!op.rope) return;
  for (std::size_t h = 0; h < n_heads; ++h)
    step.model.kernels->rope(x + h * op.spec->d_k, step.positions.cosine(*op.rope, token),
                             step.positions.sine(*op.rope, token), step.positions.half(*op.rope),
                             step.model.ropes[*op.rope]->layout == contract::RopeLayout::pairs);
}

// Queries and keys at their positions, K and V of each branch into the cache, gates in (0, 1).
void place(Step& step, const Nsa& op, const Rows& q, const Rows& gates) {
  const contract::Nsa& spec = *op.spec;
  const NsaScratch& memory = step.scratch.nsa;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t t = begin; t < end; ++t) {
      rotate_heads(step, op, t, q.row(t), spec.n_heads);
      step.model.kernels->sigmoid(gates.row(t), kBranches * spec.n_heads);
      const TokenPlace& token = step.tokens[t];
      for (std::size_t b = 0; b < kBranches; ++b) {
        float* k = memory.k[b].memory.data() + t * memory.k[b].stride;
        const float* v = memory.v[b].memory.data() + t * memory.v[b].stride;
        rotate_heads(step, op, t, k, spec.n_kv_heads);
        const std::size_t layer = op.branches[b].cache_layer;
        for (std::size_t h = 0; h < spec.n_kv_heads; ++h)
          step.model.kernels->store_kv(
              step.cache.layout(layer), k + h * spec.d_k, v + h * spec.d_v,
              step.cache.block(layer, token.cache_sequence, h, token.cache_row),
              token.cache_row % kBlockTokens);
      }
    }
  };
  for_tokens(step, q.n, work);
}

// out = sum over the branches of gate * attended, per head.
void mix(Step& step, const Nsa& op, const Rows& gates, const std::array<Rows, kBranches>& attended,
         const Rows& out) {
  const kernels::Kernels& kernels = *step.model.kernels;
  const std::size_t n_heads = op.spec->n_heads, d_v = op.spec->d_v;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t t = begin; t < end; ++t)
      for (std::size_t h = 0; h < n_heads; ++h) {
        float* sum = out.row(t) + h * d_v;
        const float* gate = gates.row(t) + h;
        kernels.scaled_add(sum, gate[0], attended[1].row(t) + h * d_v, gate[n_heads], d_v);
        kernels.scaled_add(sum, 1.0F, attended[2].row(t) + h * d_v, gate[2 * n_heads], d_v);
      }
  };
  for_tokens(step, out.n, work);
}

}  // namespace

void run_nsa(Step& step, const Nsa& op, const LazyRows& input, const Rows& out) {
  const contract::Nsa& spec = *op.spec;
  const NsaScratch& memory = step.scratch.nsa;
  const std::size_t n = input.rows.n, width = spec.n_heads * spec.d_v;
  const Rows q = step.scratch.q.rows(n, spec.n_heads * spec.d_k);
  const Rows gates = memory.gates.rows(n, kBranches * spec.n_heads);
  project(step, op, input, q, gates);
  place(step, op, q, gates);
  compress_blocks(step, op);
  const Selection selection = select_blocks(step, op, q);
  const std::array<Rows, kBranches> attended = {step.scratch.attended.rows(n, width),
                                                memory.attended[0].rows(n, width),
                                                memory.attended[1].rows(n, width)};
  attend(step, op.compressed, q, attended[0]);
  attend(step, op.selected, q, attended[1], &selection);
  attend(step, op.local, q, attended[2]);
  mix(step, op, gates, attended, attended[0]);
  run_linear(step, attended[0], op.o, out);
}

}  // namespace quern::model
