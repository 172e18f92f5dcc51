#include <algorithm>

#include "base/round_up.hpp"
#include "model/attention.hpp"
#include "model/step.hpp"

namespace quern::model {

namespace {

using base::round_up;

// Widest row of each purpose over all layers.
struct Widths {
  std::size_t q = 0, k = 0, v = 0, attended = 0, d_ff = 0;
  std::size_t columns = 0;          // widest input of a matmul
  std::vector<std::size_t> groups;  // activation groups in use

  void add(const Linear& linear) {
    if (linear.weight == nullptr) return;
    columns = std::max(columns, linear.in);
    const std::size_t group = linear.weight->format->activation_group;
    if (group != 0 && std::find(groups.begin(), groups.end(), group) == groups.end())
      groups.push_back(group);
  }

  void add(const Branch& branch) {
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
    if (branch.ffn) {
      d_ff = std::max(d_ff, branch.ffn->spec->d_ff);
      for (const Linear* linear : {&branch.ffn->gate, &branch.ffn->up, &branch.ffn->down})
        add(*linear);
    }
  }
};

Widths widths_of(const Model& model) {
  Widths widths;
  for (const Layer& layer : model.layers)
    for (const Branch& branch : layer.branches) widths.add(branch);
  widths.add(model.head.logits);
  return widths;
}

QuantizedInput quantized_input(std::size_t group, std::size_t columns, std::size_t max_chunk) {
  QuantizedInput input;
  input.group = group;
  input.codes_stride = round_up(columns, quant::kSuperColumns);
  input.groups_stride = round_up(input.codes_stride / group + 1, 16);
  input.codes = LazyArray<std::int8_t>(max_chunk * input.codes_stride);
  input.scales = LazyArray<float>(max_chunk * input.groups_stride);
  input.sums = LazyArray<std::int32_t>(max_chunk * input.groups_stride);
  return input;
}

AttentionScratch attention_scratch(const Model& model, const KvCache& cache) {
  std::size_t n_queries = 0, kernel_floats = 0;
  AttentionScratch scratch;
  for (const Layer& layer : model.layers) {
    for (const Branch& branch : layer.branches) {
      if (!branch.attention) continue;
      const contract::Attention& spec = *branch.attention->spec;
      const std::size_t rows = query_tokens(spec) * (spec.n_heads / spec.n_kv_heads);
      n_queries = std::max(n_queries, rows);
      scratch.q_stride = std::max(scratch.q_stride, round_up(spec.d_k, 16));
      scratch.o_stride = std::max(scratch.o_stride, round_up(spec.d_v, 16));
      kernel_floats = std::max(
          kernel_floats,
          kernels::attend_scratch_floats(rows, cache.layout(branch.attention->cache_layer)));
    }
  }
  scratch.q = LazyArray<float>(n_queries * scratch.q_stride);
  scratch.o = LazyArray<float>(n_queries * scratch.o_stride);
  scratch.max = LazyArray<float>(n_queries);
  scratch.sum = LazyArray<float>(n_queries);
  scratch.alibi = LazyArray<float>(n_queries);
  scratch.kernel = LazyArray<float>(kernel_floats);
  scratch.begin = LazyArray<std::uint32_t>(n_queries);
  scratch.end = LazyArray<std::uint32_t>(n_queries);
  return scratch;
}

// States of every tile of every sequence and KV head, for one decoded token each; touched as caches grow.
LazyArray<float> tile_states(const Model& model, const KvCache& cache, std::size_t o_stride) {
  std::size_t floats = 0;
  for (const Layer& layer : model.layers)
    for (const Branch& branch : layer.branches) {
      if (!branch.attention) continue;
      const contract::Attention& spec = *branch.attention->spec;
      floats = std::max(floats, spec.n_kv_heads * tile_state_floats(spec.n_heads / spec.n_kv_heads, o_stride));
    }
  const CacheOptions& options = cache.options();
  const std::size_t length = options.max_tokens != 0 ? options.max_tokens : model.contract.max_positions;
  return LazyArray<float>(options.n_sequences * (length / kernels::kTileTokens + 1) * floats);
}

}  // namespace

// Rows start on 64-byte lines, and kernels may write whole 16-row panels.
RowBuffer::RowBuffer(std::size_t n, std::size_t width) : stride(round_up(width, 16)) {
  memory = LazyArray<float>(n * stride);
}

Scratch::Scratch(const Model& model, const KvCache& cache, std::size_t max_chunk,
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
  if (model.head.logits.weight != nullptr) logits = RowBuffer(max_chunk, model.contract.vocab_size);
  for (const std::size_t group : widths.groups)
    quantized.push_back(quantized_input(group, widths.columns, max_chunk));
  for (std::size_t thread = 0; thread < n_threads; ++thread) {
    matmul.emplace_back(model.kernels->matmul_scratch_bytes(widths.columns));
    attention.push_back(attention_scratch(model, cache));
  }
  tile_states = model::tile_states(model, cache, attention.front().o_stride);
}

std::size_t Scratch::bytes() const {
  std::size_t total = tile_states.bytes();
  for (const RowBuffer* buffer : {&stream, &next_stream, &normed, &branch_out, &hidden, &q, &k, &v,
                                  &attended, &gate, &up, &logits})
    total += buffer->memory.bytes();
  for (const QuantizedInput& input : quantized)
    total += input.codes.bytes() + input.scales.bytes() + input.sums.bytes();
  for (const LazyArray<std::byte>& memory : matmul) total += memory.bytes();
  for (const AttentionScratch& memory : attention)
    total += memory.q.bytes() + memory.o.bytes() + memory.kernel.bytes() + memory.max.bytes() * 3 +
             memory.begin.bytes() * 2;
  return total;
}

}  // namespace quern::model
