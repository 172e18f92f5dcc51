#include "model/attention.hpp"

#include "model/attend.hpp"
#include "model/linear.hpp"

namespace quern::model {

namespace {

bool stores_kv(const Attention& op) {
  return op.owns_cache && op.spec->source == contract::AttentionSource::self;
}

void project(Step& step, const Attention& op, const LazyRows& input, const Rows& q, const Rows& k,
             const Rows& v) {
  const LinearJob jobs[] = {{&op.q, q}, {&op.k, k}, {&op.v, v}};
  run_linears(step, input, std::span<const LinearJob>(jobs).first(stores_kv(op) ? 3 : 1));
}

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

// Queries and keys at their positions; keys and values into the cache.
void place(Step& step, const Attention& op, const Rows& q, const Rows& k, const Rows& v) {
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t t = begin; t < end; ++t) {
      place_heads(step, op, op.q_norm, q.row(t), op.spec->n_heads, t);
      if (!stores_kv(op)) continue;
      place_kv(step, op, t, k.row(t), v.row(t));
      const TokenPlace& token = step.tokens[t];
      store_kv(step, op, step.cache, {token.cache_sequence, token.cache_row}, k.row(t), v.row(t));
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

void run_attention(Step& step, const Attention& op, const LazyRows& input, const Rows& out) {
  const contract::Attention& spec = *op.spec;
  const std::size_t n = step.n_tokens();
  const Rows q = step.scratch.q.rows(n, spec.n_heads * spec.d_k);
  const Rows k = step.scratch.k.rows(n, spec.n_kv_heads * spec.d_k);
  const Rows v = step.scratch.v.rows(n, spec.n_kv_heads * spec.d_v);
  const Rows attended = step.scratch.attended.rows(n, spec.n_heads * spec.d_v);
  step.begins(Part::qkv);
  project(step, op, input, q, k, v);
  step.begins(Part::place);
  place(step, op, q, k, v);
  step.begins(Part::attend);
  attend(step, op, q, attended);
  step.begins(Part::o);
  run_linear(step, attended, op.o, out);
}

}  // namespace quern::model
