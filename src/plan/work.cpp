#include "plan/work.hpp"

#include <algorithm>
#include <cmath>

#include "model/mla.hpp"

namespace quern::plan {

namespace {

// A phase: how many tokens share a reading of the weights, and what keys each of them meets.
struct Phase {
  const model::Model& model;
  const WorkShape& shape;
  bool decode;
  double step_tokens;  // tokens of a step
  // Only the last token of a prefill, in its last step, is here: the branches behind the last keys.
  bool last_only = false;

  // Mean keys that a query sees among `n` of its sequence, at most `window`.
  double keys(std::optional<std::size_t> window, std::size_t sinks, double n) const {
    const double most = window ? static_cast<double>(*window + sinks) : INFINITY;
    if (decode || last_only) return std::min(n, most);
    if (n <= most) return (n + 1) / 2;
    return (most * (most + 1) / 2 + (n - most) * most) / n;
  }
  double context() const { return static_cast<double>(shape.context); }
  // Tokens of one sequence that share a reading of its cache.
  double cache_sharers() const { return decode ? 1.0 : std::min(static_cast<double>(shape.chunk), context()); }
  // Per token of the whole prefill: the tokens that come here, and the readings of what they share.
  double tokens() const { return last_only ? once() : 1; }
  double weight_readings() const { return last_only ? once() : 1 / step_tokens; }
  double cache_readings() const { return last_only ? once() : 1 / cache_sharers(); }
  double once() const { return 1 / std::max(1.0, context()); }
};

class Sum {
 public:
  explicit Sum(const Phase& phase) : phase_(phase) {}
  void set_last_only(bool last_only) { phase_.last_only = last_only; }

  // A matrix that every token meets.
  void linear(const char* component, const model::Linear& linear, double times = 1) {
    if (linear.weight == nullptr) return;
    const double ops = 2.0 * static_cast<double>(linear.out) * static_cast<double>(linear.in) * times;
    Work& work = part(component);
    (linear.weight->format->integer ? work.int8_ops : work.float_ops) += ops * phase_.tokens();
    work.weight_bytes += static_cast<double>(linear.weight->bytes.size()) * phase_.weight_readings();
  }
  void floats(const char* component, double ops) { part(component).float_ops += ops * phase_.tokens(); }
  // Rows of a cache layer that a step reads once for the tokens of a sequence.
  void cache(const char* component, const model::CacheLayerSpec& spec, double rows, double share) {
    CacheShape one;
    one.layers = {spec};
    one.layers[0].window.reset();
    one.layers[0].row_block = one.layers[0].row_stride = 1;
    const auto row = static_cast<double>(cache_formula(one, phase_.shape.cache, 1).total());
    part(component).cache_bytes += row * share * rows * phase_.cache_readings();
  }
  // K behind the scores, V behind the values.
  void key_values(const model::CacheLayerSpec& spec, double rows) {
    const double k = static_cast<double>(spec.k_values()), v = static_cast<double>(spec.v_values());
    cache("attention scores", spec, rows, k / (k + v));
    cache("attention values", spec, rows, v / (k + v));
  }
  Work& part(const char* component) {
    for (Work& work : result.parts)
      if (work.component == component) return work;
    Work work;
    work.component = component;
    result.parts.push_back(work);
    return result.parts.back();
  }

  const Phase& phase() const { return phase_; }
  PhaseWork result;

 private:
  Phase phase_;
};

// Two products with each key: n_heads x (d_k + d_v) multiplications.
void add_products(Sum& sum, std::size_t n_heads, std::size_t d_k, std::size_t d_v, double keys) {
  sum.floats("attention scores", 2.0 * static_cast<double>(n_heads) * static_cast<double>(d_k) * keys);
  sum.floats("attention values", 2.0 * static_cast<double>(n_heads) * static_cast<double>(d_v) * keys);
}

// Distinct rows that a step reads of the cache: in prefill all that the chunk's queries see together.
double rows_read(const Phase& phase, std::optional<std::size_t> window, std::size_t sinks) {
  const double seen = phase.keys(window, sinks, phase.context());
  if (phase.decode || phase.last_only) return seen;
  return std::min(phase.context(), seen + phase.cache_sharers() / 2);
}

void add_keys(Sum& sum, const model::Attention& op) {
  sum.linear("attention qkv", op.k);
  sum.linear("attention qkv", op.v);
}

void add_attention(Sum& sum, const model::Stack& stack, const model::Attention& op) {
  const contract::Attention& spec = *op.spec;
  const Phase& phase = sum.phase();
  const bool cross = spec.source == contract::AttentionSource::encoder;
  sum.linear("attention qkv", op.q);
  const bool both_ways = spec.mask.kind == contract::MaskKind::bidirectional;
  const double keys = cross       ? static_cast<double>(phase.shape.source_tokens)
                      : both_ways ? std::min(phase.context(), spec.mask.window ? 2.0 * static_cast<double>(*spec.mask.window) : INFINITY)
                                  : phase.keys(spec.mask.window, spec.mask.sinks, phase.context());
  add_products(sum, spec.n_heads, spec.d_k, spec.d_v, keys);
  const model::CacheLayerSpec& layer = cross ? stack.cross_layers[op.cache_layer] : stack.cache_layers[op.cache_layer];
  sum.key_values(layer, cross || both_ways ? keys : rows_read(phase, spec.mask.window, spec.mask.sinks));
  sum.linear("attention o", op.o);
}

void add_indexer(Sum& sum, const model::Stack& stack, const model::Indexer& op) {
  for (const model::Linear* linear : {&op.q, &op.k, &op.weights}) sum.linear("attention qkv", *linear);
  const double keys = sum.phase().keys(std::nullopt, 0, sum.phase().context());
  sum.floats("indexer", 2.0 * static_cast<double>(op.spec->n_heads * op.spec->d_k) * keys);
  sum.cache("indexer", stack.cache_layers[op.cache_layer], rows_read(sum.phase(), std::nullopt, 0), 1);
}

void add_mla(Sum& sum, const model::Stack& stack, const model::Mla& op) {
  const contract::Mla& spec = *op.spec;
  const Phase& phase = sum.phase();
  for (const model::Linear* linear : {&op.q, &op.q_a, &op.q_b, &op.kv_a}) sum.linear("attention qkv", *linear);
  double keys = phase.keys(spec.mask.window, spec.mask.sinks, phase.context());
  if (op.indexer) {
    add_indexer(sum, stack, *op.indexer);
    keys = std::min(keys, static_cast<double>(op.indexer->spec->top_k));
  }
  const bool expanded = !phase.decode && phase.cache_sharers() >= static_cast<double>(model::expanded_from(spec));
  // Absorbed: k_b and v_b meet the query and the sum; expanded: the rows that a chunk reads.
  const double rows = rows_read(phase, spec.mask.window, spec.mask.sinks);
  const double times = expanded ? rows / phase.cache_sharers() : 1.0;
  sum.linear("attention latent", op.k_b, times);
  sum.linear("attention latent", op.v_b, times);
  if (expanded)
    add_products(sum, spec.n_heads, spec.d_nope + spec.d_rope, spec.d_v, keys);
  else
    add_products(sum, spec.n_heads, spec.kv_rank + spec.d_rope, spec.kv_rank, keys);
  sum.cache("attention scores", stack.cache_layers[op.latent.cache_layer], op.indexer && phase.decode ? keys : rows, 1);
  sum.linear("attention o", op.o);
}

void add_nsa(Sum& sum, const model::Stack& stack, const model::Nsa& op) {
  const contract::Nsa& spec = *op.spec;
  const Phase& phase = sum.phase();
  sum.linear("attention qkv", op.q);
  sum.linear("attention qkv", op.gates);
  for (const model::Nsa::Source& source : op.branches) {
    sum.linear("attention qkv", source.k);
    sum.linear("attention qkv", source.v);
  }
  const double all = phase.keys(std::nullopt, 0, phase.context()), stride = static_cast<double>(spec.compress_stride);
  for (const model::Nsa::Phi* phi : {&op.phi_k, &op.phi_v}) {
    sum.linear("attention compress", phi->in, static_cast<double>(spec.n_kv_heads) / stride);
    sum.linear("attention compress", phi->out, static_cast<double>(spec.n_kv_heads) / stride);
  }
  const double seen[] = {all / stride, std::min(all, static_cast<double>(spec.n_selected * spec.select_block)),
                         phase.keys(spec.window, 0, phase.context())};
  for (std::size_t b = 0; b < 3; ++b) {
    add_products(sum, spec.n_heads, spec.d_k, spec.d_v, seen[b]);
    sum.key_values(stack.cache_layers[op.branches[b].cache_layer], seen[b]);
  }
  sum.linear("attention o", op.o);
}

void add_ffn(Sum& sum, const char* component, const model::Ffn& op) {
  for (const model::Linear* linear : {&op.gate, &op.up, &op.down}) sum.linear(component, *linear);
}

// A token meets top_k experts; a step reads those that its tokens chose, spread evenly.
void add_moe(Sum& sum, const model::Moe& op) {
  sum.linear("router", op.router);
  const double n = static_cast<double>(op.spec->n_experts), k = static_cast<double>(op.spec->top_k);
  const double tokens = sum.phase().last_only ? 1 : sum.phase().step_tokens;
  const double read = n * (1.0 - std::pow(1.0 - k / n, tokens));
  for (const model::Linear* linear : {&op.experts[0].gate, &op.experts[0].up, &op.experts[0].down}) {
    if (linear->weight == nullptr) continue;
    Work& work = sum.part("experts");
    const double ops = 2.0 * static_cast<double>(linear->out) * static_cast<double>(linear->in) * k;
    (linear->weight->format->integer ? work.int8_ops : work.float_ops) += ops * sum.phase().tokens();
    work.weight_bytes += static_cast<double>(linear->weight->bytes.size()) * read * sum.phase().weight_readings();
  }
  if (op.shared) add_ffn(sum, "shared expert", *op.shared);
  if (op.shared_router) sum.linear("router", *op.shared_router);
}

// A sum of squares, a root and two products; with a mean twice as much.
void add_norms(Sum& sum, const model::Branch& branch) {
  for (const auto* norm : {&branch.norm_in, &branch.norm_out, &branch.norm_after}) {
    if (!*norm) continue;
    const double per_value = (*norm)->args.op == kernels::NormOp::rms_norm ? 4 : 7;
    sum.floats("norms", per_value * static_cast<double>((*norm)->args.n));
  }
}

void add_stack(Sum& sum, const model::Stack& stack) {
  if (stack.embedding.project) sum.linear("embedding", *stack.embedding.project);
  const bool decode = sum.phase().decode;
  model::walk_branches(stack, [&](const model::Branch& branch, bool wanted_only) {
    add_norms(sum, branch);
    if (branch.attention && branch.attention->stores_keys()) add_keys(sum, *branch.attention);
    sum.set_last_only(wanted_only && !decode);
    if (branch.attention) add_attention(sum, stack, *branch.attention);
    if (branch.mla) add_mla(sum, stack, *branch.mla);
    if (branch.nsa) add_nsa(sum, stack, *branch.nsa);
    if (branch.ffn) add_ffn(sum, "ffn", *branch.ffn);
    if (branch.moe) add_moe(sum, *branch.moe);
  });
  sum.set_last_only(false);
}

// The row of the table that a token looks up.
void add_embedding(Sum& sum, const model::Stack& stack) {
  const weights::TensorView* tokens = stack.embedding.tokens;
  if (tokens == nullptr || tokens->rows == 0) return;
  sum.part("embedding").weight_bytes += static_cast<double>(tokens->bytes.size()) / static_cast<double>(tokens->rows);
}

PhaseWork phase_work(const Phase& phase) {
  Sum sum(phase);
  const model::Stack& stack = phase.model.output_stack();
  add_embedding(sum, stack);
  add_stack(sum, stack);
  if (!phase.decode) return std::move(sum.result);  // prefill asks for the last token's logits alone
  if (phase.model.head.transform) sum.linear("head", phase.model.head.transform->linear);
  sum.linear("head", phase.model.head.logits);
  return std::move(sum.result);
}

}  // namespace

Work PhaseWork::total() const {
  Work sum;
  sum.component = "total";
  for (const Work& part : parts) {
    sum.int8_ops += part.int8_ops;
    sum.float_ops += part.float_ops;
    sum.weight_bytes += part.weight_bytes;
    sum.cache_bytes += part.cache_bytes;
  }
  return sum;
}

PhaseWork encode_work(const model::Model& model, const WorkShape& shape) {
  if (!model.encoder || !model.decoder) return {};
  WorkShape source = shape;  // read whole, in one step
  source.context = source.chunk = std::max<std::size_t>(1, shape.source_tokens);
  source.cache = {kernels::CacheType::f32, kernels::CacheType::f32};
  const Phase phase{model, source, false, static_cast<double>(source.context)};
  Sum sum(phase);
  add_embedding(sum, *model.encoder);
  add_stack(sum, *model.encoder);
  return std::move(sum.result);
}

PhaseWork prefill_work(const model::Model& model, const WorkShape& shape) {
  const std::size_t step = std::max<std::size_t>(1, std::min(shape.chunk, shape.context));
  return phase_work({model, shape, false, static_cast<double>(step)});
}

PhaseWork decode_work(const model::Model& model, const WorkShape& shape) {
  return phase_work({model, shape, true, static_cast<double>(std::max<std::size_t>(1, shape.sequences))});
}

BoundTime bound_time(const Work& work, const Limits& limits) {
  const double compute = work.int8_ops / limits.int8_rate + work.float_ops / limits.float_rate;
  const double memory = work.bytes() / limits.bandwidth;
  return compute >= memory ? BoundTime{compute, Bound::compute} : BoundTime{memory, Bound::bandwidth};
}

double total_seconds(const PhaseWork& work, const Limits& limits) {
  double seconds = 0;
  for (const Work& part : work.parts) seconds += bound_time(part, limits).seconds;
  return seconds;
}

}  // namespace quern::plan
