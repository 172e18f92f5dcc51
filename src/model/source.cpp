#include "model/source.hpp"

#include "model/attention.hpp"
#include "model/linear.hpp"

namespace quern::model {

namespace {

void store_layer(Step& step, const Attention& op, const Rows& encoded) {
  const contract::Attention& spec = *op.spec;
  const Rows k = step.scratch.k.rows(encoded.n, spec.n_kv_heads * spec.d_k);
  const Rows v = step.scratch.v.rows(encoded.n, spec.n_kv_heads * spec.d_v);
  const LinearJob jobs[] = {{&op.k, k}, {&op.v, v}};
  run_linears(step, encoded, jobs);
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t t = begin; t < end; ++t) {
      const TokenPlace& token = step.tokens[t];
      place_kv(step, op, t, k.row(t), v.row(t));
      store_kv(step, op, *step.cross, {token.sequence, token.position}, k.row(t), v.row(t));
    }
  };
  for_tokens(step, encoded.n, work);
}

}  // namespace

void store_source(Step& step) {
  for (const Run& run : step.runs) {
    step.cross->clear(run.sequence);
    step.cross->reserve(run.sequence, run.n_tokens);
  }
  const Rows encoded = step.scratch.encoded.rows(step.n_tokens(), step.model.contract.d_model);
  for (const Layer& layer : step.stack.layers)
    for (const Branch& branch : layer.branches)
      if (branch.attention && branch.attention->spec->source == contract::AttentionSource::encoder)
        store_layer(step, *branch.attention, encoded);
  for (const Run& run : step.runs) step.cross->commit(run.sequence, run.n_tokens);
}

}  // namespace quern::model
