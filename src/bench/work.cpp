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

// The keys and values of a branch that its queries can do without, once they are stored.
void add_keys(Macs& macs, const model::Branch& branch) {
  if (!branch.attention || !branch.attention->stores_keys()) return;
  macs.add(branch.attention->k);
  macs.add(branch.attention->v);
}

// Sum of min(t, window) over the positions t = first + 1 ... first + n.
double keys_seen(double first, double n, double window) {
  const double whole = std::clamp(window - first, 0.0, n);  // positions that still see everything
  return whole * (first + (whole + 1) / 2) + (n - whole) * window;
}

struct Tokens {
  double first, n;        // positions [first, first + n)
  double n_wanted;        // of them, from the end: outputs are asked for
  bool bidirectional;     // all see all
  double n_source;        // of cross-attention

  Tokens wanted() const { return {first + n - n_wanted, n_wanted, n_wanted, bidirectional, n_source}; }
};

// Multiplications of scores and weighted sums.
double attention_macs(const model::Branch& branch, const Tokens& tokens) {
  const model::Attention* a = branch.attention ? &*branch.attention : branch.mla ? &branch.mla->latent : nullptr;
  if (a == nullptr) return 0;
  const double window = a->spec->mask.window ? static_cast<double>(*a->spec->mask.window) : 1e18;
  double keys = keys_seen(tokens.first, tokens.n, window);
  if (a->spec->source != contract::AttentionSource::self) keys = tokens.n * tokens.n_source;
  else if (tokens.bidirectional) keys = tokens.n * std::min(tokens.first + tokens.n, 2 * window);
  return keys * static_cast<double>(a->spec->n_heads) * static_cast<double>(a->spec->d_k + a->spec->d_v);
}

WorkCounts phase(const model::Stack& stack, const Tokens& tokens, double n_sequences, const Macs& head) {
  double all = tokens.n_wanted * head.all, integer = tokens.n_wanted * head.integer, attention = 0;
  const auto add = [&](const Macs& macs, double n) {
    all += n * macs.all;
    integer += n * macs.integer;
  };
  model::walk_branches(stack, [&](const model::Branch& branch, bool wanted_only) {
    const Tokens meets = wanted_only ? tokens.wanted() : tokens;
    Macs macs, keys;
    add_branch(macs, branch);
    add_keys(keys, branch);
    add(macs, meets.n);
    add(keys, tokens.n);
    attention += attention_macs(branch, meets);
  });
  WorkCounts work;
  work.operations = 2 * n_sequences * (all + attention);
  work.integer = integer > all / 2;
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
    work.prompt = encodes ? phase(*model.encoder, {0, p, p, true, 0}, sequences, {})
                          : phase(*model.decoder, {depth, p, 1, false, 0}, sequences, head);
  if (one.n_gen != 0 && model.decoder) {
    const Tokens tokens{depth + (encodes ? 0 : p), n, n, false, static_cast<double>(n_source)};
    work.gen = phase(*model.decoder, tokens, sequences, head);
    work.gen.weight_bytes = n * static_cast<double>(engine::weight_bytes_per_token(model));
  }
  return work;
}

}  // namespace quern::bench
