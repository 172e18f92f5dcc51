#include <algorithm>

#include "base/round_up.hpp"
#include "model/attend.hpp"
#include "model/step.hpp"

namespace quern::model {

namespace {

using base::round_up;

// Widest row of each purpose over all layers.
struct Widths {
  std::size_t q = 0, k = 0, v = 0, attended = 0, d_ff = 0;
  std::size_t embedded = 0;         // 0: no embedding is projected
  std::size_t vector = 0;           // 0: no layers behind a pooling
  std::size_t columns = 0;          // widest input of a matmul
  std::vector<std::size_t> groups;  // activation groups in use

  void add(const Linear& linear) {
    if (linear.weight == nullptr) return;
    columns = std::max(columns, linear.in);
    const std::size_t group = linear.weight->format->activation_group;
    if (group != 0 && std::find(groups.begin(), groups.end(), group) == groups.end())
      groups.push_back(group);
  }

  void add_ffn(const Ffn& op) {
    d_ff = std::max(d_ff, op.spec->d_ff);
    for (const Linear* linear : {&op.gate, &op.up, &op.down}) add(*linear);
  }

  void add_mla(const Mla& op) {
    q = std::max(q, op.spec->n_heads * (op.spec->d_nope + op.spec->d_rope));
    attended = std::max(attended, op.spec->n_heads * op.spec->d_v);
    for (const Linear* linear : {&op.q, &op.q_a, &op.q_b, &op.kv_a, &op.k_b, &op.v_b, &op.o}) add(*linear);
    if (!op.indexer) return;
    for (const Linear* linear : {&op.indexer->q, &op.indexer->k, &op.indexer->weights}) add(*linear);
  }

  void add_nsa(const Nsa& op) {
    q = std::max(q, op.spec->n_heads * op.spec->d_k);
    attended = std::max(attended, op.spec->n_heads * op.spec->d_v);
    for (const Linear* linear : {&op.q, &op.gates, &op.o, &op.phi_k.in, &op.phi_k.out, &op.phi_v.in, &op.phi_v.out})
      add(*linear);
    for (const Nsa::Source& source : op.branches) {
      add(source.k);
      add(source.v);
    }
  }

  // The experts' own rows are in MoeScratch.
  void add_moe(const Moe& op) {
    add(op.router);
    if (op.shared) add_ffn(*op.shared);
    if (op.shared_router) add(*op.shared_router);
  }

  void add(const Branch& branch) {
    if (branch.mla) add_mla(*branch.mla);
    if (branch.nsa) add_nsa(*branch.nsa);
    if (branch.moe) add_moe(*branch.moe);
    if (branch.attention) {
      const contract::Attention& spec = *branch.attention->spec;
      q = std::max(q, spec.n_heads * spec.d_k);
      k = std::max(k, spec.n_kv_heads * spec.d_k);
      v = std::max(v, spec.n_kv_heads * spec.d_v);
      attended = std::max(attended, spec.n_heads * spec.d_v);
      for (const Linear* linear :
           {&branch.attention->q, &branch.attention->k, &branch.attention->v, &branch.attention->o})
        add(*linear);
    }
    if (branch.ffn) add_ffn(*branch.ffn);
  }
};

Widths widths_of(const Model& model) {
  Widths widths;
  for_branches(model, [&](const Branch& branch) { widths.add(branch); });
  for (const Stack* stack : model.stacks()) {
    if (!stack->embedding.project) continue;
    widths.embedded = std::max(widths.embedded, stack->embedding.project->in);
    widths.add(*stack->embedding.project);
  }
  if (model.head.transform) widths.add(model.head.transform->linear);
  widths.add(model.head.logits);
  for (const HeadTransform& layer : model.pooling) {
    widths.add(layer.linear);
    widths.vector = std::max({widths.vector, layer.linear.in, layer.linear.out});
  }
  return widths;
}

// The largest need of any softmax over keys.
struct AttentionNeed {
  std::size_t n_queries = 0, group = 0, kernel_floats = 0, line_floats = 0;
  std::size_t q_stride = 0, o_stride = 0;

  void add(const Attention& op) {
    const contract::Attention& spec = *op.spec;
    const std::size_t heads = group_heads(op), rows = query_tokens(op) * heads;
    n_queries = std::max(n_queries, rows);
    q_stride = std::max(q_stride, round_up(kernels::query_floats(spec.d_k), 16));
    o_stride = std::max(o_stride, round_up(spec.d_v, 16));
    const kernels::CacheLayout layout =
        op.d_rope != 0
            ? kernels::make_latent_layout(kernels::CacheType::f32, spec.d_v, op.d_rope)
            : kernels::make_cache_layout(kernels::CacheType::f32, kernels::CacheType::f32, spec.d_k, spec.d_v);
    kernel_floats = std::max(kernel_floats, kernels::attend_scratch_floats(rows, layout));
    if (!spec.relative_bias) return;
    group = std::max(group, heads);
    line_floats = std::max(line_floats, kernels::kTileTokens + query_tokens(op));
  }
};

// Every softmax over keys of a branch.
template <class F>
void for_attentions(const Branch& branch, F&& visit) {
  if (branch.attention) visit(*branch.attention);
  if (branch.mla) visit(branch.mla->latent);
  if (branch.nsa)
    for (const Attention* op : {&branch.nsa->compressed, &branch.nsa->selected, &branch.nsa->local}) visit(*op);
}

AttentionScratch attention_scratch(const Model& model) {
  AttentionNeed need;
  for_branches(model, [&](const Branch& branch) {
    for_attentions(branch, [&](const Attention& op) { need.add(op); });
  });
  AttentionScratch scratch;
  scratch.q_stride = need.q_stride;
  scratch.o_stride = need.o_stride;
  scratch.bias_stride = round_up(need.line_floats, 16);
  scratch.q = LazyArray<float>(need.n_queries * need.q_stride);
  scratch.o = LazyArray<float>(need.n_queries * need.o_stride);
  scratch.max = LazyArray<float>(need.n_queries);
  scratch.sum = LazyArray<float>(need.n_queries);
  scratch.alibi = LazyArray<float>(need.n_queries);
  scratch.kernel = LazyArray<float>(need.kernel_floats);
  scratch.begin = LazyArray<std::uint32_t>(need.n_queries);
  scratch.end = LazyArray<std::uint32_t>(need.n_queries);
  scratch.bias_lines = LazyArray<float>(need.group * scratch.bias_stride);
  scratch.bias = LazyArray<const float*>(need.n_queries);
  scratch.selected = LazyArray<const std::uint32_t*>(need.n_queries);
  return scratch;
}

// States of every tile of every sequence and KV head, for one decoded token each; touched as caches
// grow.
LazyArray<float> tile_states(const Model& model, const CacheExtent& extent, std::size_t o_stride) {
  std::size_t floats = 0;
  for_branches(model, [&](const Branch& branch) {
    for_attentions(branch, [&](const Attention& op) {
      floats = std::max(floats, op.n_groups * tile_state_floats(group_heads(op), o_stride));
    });
  });
  return LazyArray<float>(extent.n_sequences * (extent.max_tokens / kernels::kTileTokens + 1) *
                          floats);
}

std::size_t most_groups(const Model& model) {
  std::size_t most = 0;
  for_branches(model, [&](const Branch& branch) {
    for_attentions(branch, [&](const Attention& op) { most = std::max(most, op.n_groups); });
  });
  return most;
}

}  // namespace

Scratch::Scratch(const Model& model, const CacheExtent& extent, std::size_t max_chunk,
                 std::size_t n_threads) {
  const Widths widths = widths_of(model);
  const std::size_t d_model = model.contract.d_model;
  for (RowBuffer* buffer : {&stream, &next_stream, &normed, &branch_out, &hidden})
    *buffer = RowBuffer(max_chunk, d_model);
  q = RowBuffer(max_chunk, widths.q);
  k = RowBuffer(max_chunk, widths.k);
  v = RowBuffer(max_chunk, widths.v);
  attended = RowBuffer(max_chunk, widths.attended);
  gate = RowBuffer(max_chunk, widths.d_ff);
  up = RowBuffer(max_chunk, widths.d_ff);
  embedded = RowBuffer(max_chunk, widths.embedded);
  vector = RowBuffer(2, widths.vector);
  if (model.head.logits.weight != nullptr) logits = RowBuffer(max_chunk, model.head.logits.out);
  if (model.head.pool) pooled = RowBuffer(max_chunk, d_model);
  if (model.head.transform) transformed = RowBuffer(max_chunk, model.head.transform->linear.out);
  if (model.encoder && model.decoder) encoded = RowBuffer(max_chunk, d_model);
  for (const std::size_t group : widths.groups)
    quantized.emplace_back(group, max_chunk, widths.columns);
  for (std::size_t thread = 0; thread < n_threads; ++thread) {
    matmul.emplace_back(model.kernels->matmul_scratch_bytes(widths.columns));
    attention.push_back(attention_scratch(model));
  }
  tile_states = model::tile_states(model, extent, attention.front().o_stride);
  tiles_together = LazyArray<std::size_t>(extent.n_sequences * most_groups(model));
  mla = MlaScratch(model, max_chunk, n_threads);
  index = IndexScratch(model, extent, max_chunk, n_threads);
  nsa = NsaScratch(model, extent, max_chunk, n_threads);
  moe = MoeScratch(model, max_chunk, n_threads);
}

std::size_t Scratch::bytes() const {
  std::size_t total = tile_states.bytes() + tiles_together.bytes() + mla.bytes() + index.bytes() + nsa.bytes() + moe.bytes();
  for (const RowBuffer* buffer :
       {&stream, &next_stream, &normed, &branch_out, &hidden, &q, &k, &v, &attended, &gate, &up,
        &embedded, &logits, &pooled, &transformed, &vector, &encoded})
    total += buffer->memory.bytes();
  for (const QuantizedInput& input : quantized)
    total += input.bytes();
  for (const LazyArray<std::byte>& memory : matmul) total += memory.bytes();
  for (const AttentionScratch& memory : attention)
    total += memory.q.bytes() + memory.o.bytes() + memory.kernel.bytes() + memory.max.bytes() * 3 +
             memory.begin.bytes() * 2 + memory.bias_lines.bytes() + memory.bias.bytes() +
             memory.selected.bytes();
  return total;
}

namespace {

// Bytes of the rows behind the first n.
std::size_t rest_bytes(const RowBuffer& buffer, std::size_t n) {
  const std::size_t used = std::min(n * buffer.stride, buffer.memory.size());
  return (buffer.memory.size() - used) * sizeof(float);
}

bool has_parallel_block(const Model& model) {
  for (const Stack* stack : model.stacks())
    for (const Layer& layer : stack->layers)
      if (layer.residual == contract::Residual::parallel) return true;
  return false;
}

bool has_gate(const Model& model) {
  bool found = false;
  for_branches(model, [&](const Branch& branch) {
    found = found || (branch.ffn && branch.ffn->spec->gated) ||
            (branch.moe && branch.moe->shared && branch.moe->shared->spec->gated);
  });
  return found;
}

}  // namespace

std::size_t Scratch::used_bytes(const Model& model, const ScratchUse& use) const {
  std::size_t unused = 0;
  if (!model.head.pool) unused += rest_bytes(hidden, use.n_outputs);
  for (const RowBuffer* buffer : {&logits, &pooled, &transformed})
    unused += rest_bytes(*buffer, use.n_outputs);
  for (const RowBuffer* buffer : {&mla.absorbed, &mla.latents})
    unused += rest_bytes(*buffer, use.absorbed_tokens);
  if (!use.expanded) unused += mla.expanded_bytes();
  if (!has_parallel_block(model)) unused += next_stream.memory.bytes();
  if (!has_gate(model)) unused += gate.memory.bytes();
  return bytes() - unused;
}

}  // namespace quern::model
