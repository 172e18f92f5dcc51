#include "bench/work.hpp"

#include <algorithm>

#include "engine/report.hpp"
#include "quant/format.hpp"

namespace quern::bench {

namespace {

// Multiplications of one token in the matrices of a stack, and how many of them are byte products.
struct Macs {
  double all = 0, integer = 0;

  void add(const model::Linear& linear, double times = 1) {
    if (linear.weight == nullptr) return;
    const double n = static_cast<double>(linear.out) * static_cast<double>(linear.in) * times;
    all += n;
    if (linear.weight->format->integer) integer += n;
  }
  void add(const model::Ffn& ffn, double times = 1) {
    add(ffn.gate, times);
    add(ffn.up, times);
    add(ffn.down, times);
  }
};

void add_moe(Macs& macs, const model::Moe& moe) {
  const double times = static_cast<double>(moe.spec->top_k) / static_cast<double>(moe.experts.size());
  macs.add(moe.router);
  for (const model::Ffn& expert : moe.experts) macs.add(expert, times);
  if (moe.shared) macs.add(*moe.shared);
  if (moe.shared_router) macs.add(*moe.shared_router);
}

void add_branch(Macs& macs, const model::Branch& branch) {
  if (const auto& a = branch.attention) {
    macs.add(a->q);
    macs.add(a->o);
    if (a->spec->source == contract::AttentionSource::self) {
      macs.add(a->k);
      macs.add(a->v);
    }
  }
  if (branch.mla)
    for (const model::Linear* linear : {&branch.mla->q, &branch.mla->q_a, &branch.mla->q_b, &branch.mla->kv_a,
                                        &branch.mla->k_b, &branch.mla->v_b, &branch.mla->o})
      macs.add(*linear);
  if (branch.nsa) {
    macs.add(branch.nsa->q);
    macs.add(branch.nsa->gates);
    macs.add(branch.nsa->o);
    for (const model::Nsa::Source& source : branch.nsa->branches) {
      macs.add(source.k);
      macs.add(source.v);
    }
  }
  if (branch.ffn) macs.add(*branch.ffn);
  if (branch.moe) add_moe(macs, *branch.moe);
}

Macs stack_macs(const model::Stack& stack) {
  Macs macs;
  for (const model::Layer& layer : stack.layers)
    for (const model::Branch& branch : layer.branches) add_branch(macs, branch);
  return macs;
}

// Sum of min(t, window) over the positions t = first + 1 ... first + n.
double keys_seen(double first, double n, double window) {
  const double whole = std::clamp(window - first, 0.0, n);  // positions that still see everything
  return whole * (first + (whole + 1) / 2) + (n - whole) * window;
}

struct Tokens {
  double first, n;        // positions [first, first + n)
  bool bidirectional;     // all see all
  double n_source;        // of cross-attention
};

// Multiplications of scores and weighted sums.
double attention_macs(const model::Stack& stack, const Tokens& tokens) {
  double macs = 0;
  for (const model::Layer& layer : stack.layers)
    for (const model::Branch& branch : layer.branches) {
      const model::Attention* a = branch.attention ? &*branch.attention : branch.mla ? &branch.mla->latent : nullptr;
      if (a == nullptr) continue;
      const double window = a->spec->mask.window ? static_cast<double>(*a->spec->mask.window) : 1e18;
      double keys = keys_seen(tokens.first, tokens.n, window);
      if (a->spec->source != contract::AttentionSource::self) keys = tokens.n * tokens.n_source;
      else if (tokens.bidirectional) keys = tokens.n * std::min(tokens.first + tokens.n, 2 * window);
      macs += keys * static_cast<double>(a->spec->n_heads) * static_cast<double>(a->spec->d_k + a->spec->d_v);
    }
  return macs;
}

WorkCounts phase(const model::Stack& stack, const Tokens& tokens, double n_sequences, const Macs& head, double n_heads) {
  const Macs macs = stack_macs(stack);
  const double matrices = tokens.n * macs.all + n_heads * head.all;
  const double integer = tokens.n * macs.integer + n_heads * head.integer;
  WorkCounts work;
  work.operations = 2 * n_sequences * (matrices + attention_macs(stack, tokens));
  work.integer = integer > matrices / 2;
  return work;
}

Macs head_macs(const model::Model& model) {
  Macs macs;
  if (model.head.transform) macs.add(model.head.transform->linear);
  macs.add(model.head.logits);
  return macs;
}

}  // namespace

CaseWork count_work(const model::Model& model, const Case& one, std::size_t n_source) {
  const auto sequences = static_cast<double>(one.n_sequences());
  const auto depth = static_cast<double>(one.n_depth), p = static_cast<double>(one.n_prompt),
             n = static_cast<double>(one.n_gen);
  const Macs head = head_macs(model);
  CaseWork work;
  const bool encodes = model.encoder.has_value();
  if (one.n_prompt != 0)
    work.prompt = phase(encodes ? *model.encoder : *model.decoder, {encodes ? 0 : depth, p, encodes, 0}, sequences, head,
                        encodes ? 0 : 1);
  if (one.n_gen != 0 && model.decoder) {
    work.gen = phase(*model.decoder, {depth + (encodes ? 0 : p), n, false, static_cast<double>(n_source)}, sequences, head,
                     n);
    work.gen.weight_bytes = n * static_cast<double>(engine::weight_bytes_per_token(model));
  }
  return work;
}

}  // namespace quern::bench
