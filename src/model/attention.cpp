#include "model/attention.hpp"

#include "model/attend.hpp"
#include "model/linear.hpp"

namespace quern::model {

namespace {

void clip(const Step& step, const Attention& op, float* x, std::size_t n) {
  if (!op.spec->clip_qkv) return;
  const auto limit = static_cast<float>(*op.spec->clip_qkv);
  step.model.kernels->clamp(x, -limit, limit, n);
}

void norm_head(const Step& step, const Attention& op, const Norm& norm, std::size_t head,
               float* x) {
  kernels::NormArgs args = norm.args;
  if (op.spec->qk_norm->over == contract::QkNormOver::each_head) {
    if (args.weight != nullptr) args.weight += head * args.n;
    if (args.bias != nullptr) args.bias += head * args.n;
  }
  step.model.kernels->norm(args, x, x);
}

// Clip, norm and rotation of the heads of one token, x [n_heads * d_k].
void place_heads(const Step& step, const Attention& op, const std::optional<Norm>& norm, float* x,
                 std::size_t n_heads, std::size_t token) {
  const kernels::Kernels& kernels = *step.model.kernels;
  const std::size_t d_k = op.spec->d_k;
  clip(step, op, x, n_heads * d_k);
  const bool over_all = norm && op.spec->qk_norm->over == contract::QkNormOver::all;
  if (over_all) kernels.norm(norm->args, x, x);
  for (std::size_t head = 0; head < n_heads; ++head) {
    float* row = x + head * d_k;
    if (norm && !over_all) norm_head(step, op, *norm, head, row);
    if (op.rope)
      kernels.rope(row, step.positions.cosine(*op.rope, token),
                   step.positions.sine(*op.rope, token), step.positions.half(*op.rope),
                   step.model.ropes[*op.rope]->layout == contract::RopeLayout::pairs);
  }
}

// What one call of run_attention() or store_keys() makes of the step's tokens.
struct Projected {
  Rows q, k, v;  // [tokens, heads * width]
  bool queries = true, keys = true;
};

Projected projected(const Step& step, const Attention& op) {
  const contract::Attention& spec = *op.spec;
  const std::size_t n = step.n_tokens();
  return {step.scratch.q.rows(n, spec.n_heads * spec.d_k), step.scratch.k.rows(n, spec.n_kv_heads * spec.d_k),
          step.scratch.v.rows(n, spec.n_kv_heads * spec.d_v)};
}

// The parts of `rows` from the input; queries and keys at their positions, keys and values into the cache.
void make(Step& step, const Attention& op, const LazyRows& input, const Projected& rows) {
  step.begins(Part::qkv);
  const LinearJob jobs[] = {{&op.q, rows.q}, {&op.k, rows.k}, {&op.v, rows.v}};
  const std::size_t first = rows.queries ? 0 : 1, end = rows.keys ? 3 : 1;
  run_linears(step, input, std::span<const LinearJob>(jobs).subspan(first, end - first));
  step.begins(Part::place);
  auto work = [&](std::size_t begin, std::size_t last, std::size_t) {
    for (std::size_t t = begin; t < last; ++t) {
      if (rows.queries) place_heads(step, op, op.q_norm, rows.q.row(t), op.spec->n_heads, t);
      if (!rows.keys) continue;
      place_kv(step, op, t, rows.k.row(t), rows.v.row(t));
      const TokenPlace& token = step.tokens[t];
      store_kv(step, op, step.cache, {token.cache_sequence, token.cache_row}, rows.k.row(t), rows.v.row(t));
    }
  };
  for_tokens(step, step.n_tokens(), work);
}

}  // namespace

void place_kv(const Step& step, const Attention& op, std::size_t token, float* k, float* v) {
  place_heads(step, op, op.k_norm, k, op.spec->n_kv_heads, token);
  clip(step, op, v, op.spec->n_kv_heads * op.spec->d_v);
}

void store_kv(const Step& step, const Attention& op, KvCache& cache, const CacheRow& place,
              const float* k, const float* v) {
  const contract::Attention& spec = *op.spec;
  const kernels::CacheLayout& layout = cache.layout(op.cache_layer);
  for (std::size_t head = 0; head < spec.n_kv_heads; ++head)
    step.model.kernels->store_kv(layout, k + head * spec.d_k, v + head * spec.d_v,
                                 cache.block(op.cache_layer, place.sequence, head, place.row),
                                 place.row % kernels::kBlockTokens);
}

void store_keys(Step& step, const Attention& op, const LazyRows& input) {
  Projected rows = projected(step, op);
  rows.queries = false;
  make(step, op, input, rows);
}

void run_attention(Step& step, const Attention& op, const LazyRows& input, const Rows& out, bool stored) {
  Projected rows = projected(step, op);
  rows.keys = op.stores_keys() && !stored;
  make(step, op, input, rows);
  const Rows attended = step.scratch.attended.rows(step.n_tokens(), op.spec->n_heads * op.spec->d_v);
  step.begins(Part::attend);
  attend(step, op, rows.q, attended);
  step.begins(Part::o);
  run_linear(step, attended, op.o, out);
}

}  // namespace quern::model
