#include "model/query_block.hpp"

#include <algorithm>
#include <limits>

#include "model/relative_bias.hpp"

namespace quern::model {

using kernels::kBlockTokens;
using kernels::kTileTokens;

namespace {

// Keys [begin, end) that the query at a position of the run sees; both grow with the position.
struct Visible {
  std::size_t begin, end;
};

Visible visible_keys(const Attention& op, const Run& run, std::size_t position) {
  const contract::Attention& spec = *op.spec;
  if (spec.source == contract::AttentionSource::encoder) return {0, run.source_length};
  const contract::Mask& mask = spec.mask;
  const std::size_t length = run.first_position + run.n_tokens;
  const std::size_t begin =
      mask.window && position + 1 > *mask.window ? position + 1 - *mask.window : 0;
  switch (mask.kind) {
    case contract::MaskKind::causal:
      return {begin, rows_of(position + 1, op.row_block, op.row_stride)};
    case contract::MaskKind::bidirectional:
      return {begin, mask.window ? std::min(length, position + *mask.window) : length};
    case contract::MaskKind::prefix:
      return {begin, std::max(position + 1, std::min(run.prefix_length, length))};
  }
  return {0, 0};
}

std::size_t kv_head_of(const Attention& op, std::size_t group) {
  return group / (op.n_groups / op.spec->n_kv_heads);
}

// The bias of the tile's keys for every query of the block. One line per head by key - query: a
// later query begins earlier in it.
void place_bias(const Attention& op, const QueryBlock& block, std::size_t key,
                const AttentionScratch& scratch) {
  const contract::Attention& spec = *op.spec;
  const std::size_t group = group_heads(op), last = block.n_tokens - 1;
  const auto position = static_cast<std::int64_t>(block.run->first_position + block.first + last);
  fill_bias_lines(
      {*spec.relative_bias, op.relative_bias, spec.n_heads, block.head_group * group, group},
      static_cast<std::int64_t>(key) - position, kTileTokens + last, scratch.bias_lines.data(),
      scratch.bias_stride);
  for (std::size_t i = 0; i < block.n_tokens * group; ++i)
    scratch.bias[i] =
        scratch.bias_lines.data() + i % group * scratch.bias_stride + (last - i / group);
}

}  // namespace

KvCache& cache_of(const Step& step, const Attention& op) {
  return op.spec->source == contract::AttentionSource::encoder ? *step.cross : step.cache;
}

void clear_states(const kernels::AttendState& states, std::size_t n_queries) {
  std::fill_n(states.max, n_queries, -std::numeric_limits<float>::infinity());
  std::fill_n(states.sum, n_queries, 0.0F);
  std::fill_n(states.o, n_queries * states.o_stride, 0.0F);
}

void prepare_queries(const Step& step, const Job& job, const QueryBlock& block, const AttentionScratch& scratch) {
  const Attention& op = job.op;
  const kernels::CacheLayout& layout = cache_of(step, op).layout(op.cache_layer);
  const contract::Attention& spec = *op.spec;
  const Selection* selection = job.selection;
  const std::size_t group = group_heads(op);
  for (std::size_t i = 0; i < block.n_tokens * group; ++i) {
    const std::size_t token = block.first + i / group;
    const std::size_t head = block.head_group * group + i % group;
    const Visible visible = visible_keys(op, *block.run, block.run->first_position + token);
    step.model.kernels->store_query(layout, job.q.row(block.run->first_token + token) + head * spec.d_k,
                                    scratch.q.data() + i * scratch.q_stride);
    scratch.begin[i] = static_cast<std::uint32_t>(visible.begin);
    scratch.end[i] = static_cast<std::uint32_t>(visible.end);
    if (spec.alibi) scratch.alibi[i] = spec.alibi->slopes[head];
    if (selection == nullptr) continue;
    const std::size_t row = (block.run->first_token + token) * selection->n_groups +
                            kv_head_of(op, block.head_group) % selection->n_groups;
    scratch.selected[i] = selection->bits + row * selection->words;
  }
}

kernels::AttendArgs attend_args(const Step& step, const Job& job, const QueryBlock& block,
                                const AttentionScratch& scratch) {
  const Attention& op = job.op;
  const contract::Attention& spec = *op.spec;
  kernels::AttendArgs args{};
  args.layout = &cache_of(step, op).layout(op.cache_layer);
  args.n_queries = block.n_tokens * group_heads(op);
  args.q = scratch.q.data();
  args.q_stride = scratch.q_stride;
  args.begin = scratch.begin.data();
  args.end = scratch.end.data();
  args.sinks = spec.mask.window ? static_cast<std::uint32_t>(spec.mask.sinks) : 0;
  args.scale = static_cast<float>(spec.scale);
  args.softcap = static_cast<float>(spec.softcap.value_or(0.0));
  args.alibi = spec.alibi ? scratch.alibi.data() : nullptr;
  args.bias = op.relative_bias != nullptr ? scratch.bias.data() : nullptr;
  args.alibi_before_scale = spec.alibi && spec.alibi->before_scale;
  args.alibi_bf16 = spec.alibi && spec.alibi->round == contract::BiasRound::bf16;
  args.state = {scratch.max.data(), scratch.sum.data(), scratch.o.data(), scratch.o_stride};
  args.scratch = scratch.kernel.data();
  args.selected = job.selection != nullptr ? scratch.selected.data() : nullptr;
  return args;
}

std::size_t keys_of(const Attention& op, const Run& run) {
  return visible_keys(op, run, run.first_position + run.n_tokens - 1).end;
}

Tile tile_at(const Step& step, const Attention& op, const QueryBlock& block, std::size_t key, std::size_t n_keys) {
  const bool cross = op.spec->source == contract::AttentionSource::encoder;
  const std::size_t sequence = cross ? block.run->source : block.run->cache_sequence;
  const std::size_t first_row = cross ? 0 : block.run->first_row;
  Tile tile;
  tile.first_key = key;
  if (key < n_keys) tile.n_blocks = (std::min(n_keys - key, kTileTokens) + kBlockTokens - 1) / kBlockTokens;
  for (std::size_t b = 0; b < tile.n_blocks; ++b)
    tile.blocks[b] = cache_of(step, op).block(op.cache_layer, sequence, kv_head_of(op, block.head_group),
                                              first_row + key + b * kBlockTokens);
  return tile;
}

void run_tile(const Step& step, const Attention& op, const QueryBlock& block, const AttentionScratch& scratch,
              kernels::AttendArgs& args, const Tile& tile, const Tile& next) {
  const std::size_t key = tile.first_key;
  const std::size_t n_keys = args.end[args.n_queries - 1], first_seen = args.begin[0];
  if (key >= n_keys || (key + kTileTokens <= first_seen && key >= args.sinks)) return;
  args.first_key = key;
  args.blocks = tile.blocks.data();
  args.n_blocks = tile.n_blocks;
  args.next_blocks = next.blocks.data();
  args.n_next_blocks = next.n_blocks;
  if (args.bias != nullptr) place_bias(op, block, key, scratch);
  step.model.kernels->attend(args);
}

void finish_block(const Step& step, const Attention& op, const QueryBlock& block,
                  const kernels::AttendState& states, const Rows& out) {
  const contract::Attention& spec = *op.spec;
  const std::size_t group = group_heads(op);
  for (std::size_t t = 0; t < block.n_tokens; ++t) {
    const std::size_t first = t * group;
    const std::size_t head = block.head_group * group;
    const kernels::AttendState state{states.max + first, states.sum + first,
                                     states.o + first * states.o_stride, states.o_stride};
    step.model.kernels->finish_attention(
        state, group, spec.d_v, out.row(block.run->first_token + block.first + t) + head * spec.d_v,
        spec.d_v, op.sink_logits == nullptr ? nullptr : op.sink_logits + head);
  }
}

}  // namespace quern::model
