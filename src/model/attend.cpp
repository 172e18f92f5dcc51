#include "model/attend.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/round_up.hpp"
#include "model/relative_bias.hpp"

namespace quern::model {

using kernels::kBlockTokens;
using kernels::kTileBlocks;
using kernels::kTileTokens;

namespace {

constexpr std::size_t kQueryRows = 64;

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

// One item: consecutive tokens of one run, the query heads of one group.
struct QueryBlock {
  const Run* run;
  std::size_t first, n_tokens;  // within the run
  std::size_t head_group;
};

// One call of attend().
struct Job {
  const Attention& op;
  const Rows &q, &out;
  const Selection* selection;
};

std::size_t kv_head_of(const Attention& op, std::size_t group) {
  return group / (op.n_groups / op.spec->n_kv_heads);
}

void clear_states(const kernels::AttendState& states, std::size_t n_queries) {
  std::fill_n(states.max, n_queries, -std::numeric_limits<float>::infinity());
  std::fill_n(states.sum, n_queries, 0.0F);
  std::fill_n(states.o, n_queries * states.o_stride, 0.0F);
}

KvCache& cache_of(const Step& step, const Attention& op) {
  return op.spec->source == contract::AttentionSource::encoder ? *step.cross : step.cache;
}

// Gathers the queries [n_tokens * group], as the kernels take them, and their visible keys.
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

// Cache blocks of one tile.
struct Tile {
  std::size_t first_key = 0, n_blocks = 0;
  std::array<const std::byte*, kTileBlocks> blocks;
};

// Of the keys [key, n_keys) the first tile; none where there is no such key.
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

// A tile of keys, unless no query of the block sees any of them; `next`: the tile to come.
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

// Finished states of the block's queries -> rows of `out`.
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

// All tiles in index order: a tile's state does not depend on the other queries, so bits do not
// depend on how tokens are cut into blocks.
void attend_block(const Step& step, const Job& job, const QueryBlock& block, std::size_t thread) {
  const AttentionScratch& scratch = step.scratch.attention[thread];
  prepare_queries(step, job, block, scratch);
  kernels::AttendArgs args = attend_args(step, job, block, scratch);
  clear_states(args.state, args.n_queries);
  const std::size_t n_keys = args.end[args.n_queries - 1];
  Tile tile = tile_at(step, job.op, block, 0, n_keys);
  while (tile.n_blocks > 0) {
    const Tile next = tile_at(step, job.op, block, tile.first_key + kTileTokens, n_keys);
    run_tile(step, job.op, block, scratch, args, tile, next);
    tile = next;
  }
  finish_block(step, job.op, block, args.state, job.out);
}

// Items: heads outermost, so that a head's keys stay in cache; within a run the last block, which
// sees the most keys, goes first.
void attend_by_block(Step& step, const Job& job) {
  const Attention& op = job.op;
  const std::size_t block_tokens = query_tokens(op);
  const auto n_blocks_of = [&](const Run& run) {
    return (run.n_tokens + block_tokens - 1) / block_tokens;
  };
  std::size_t n_blocks = 0;
  for (const Run& run : step.runs) n_blocks += n_blocks_of(run);
  auto work = [&](std::size_t begin, std::size_t end, std::size_t thread) {
    for (std::size_t item = begin; item < end; ++item) {
      std::size_t index = item % n_blocks;
      const Run* run = step.runs.data();
      while (index >= n_blocks_of(*run)) index -= n_blocks_of(*run++);
      const std::size_t first = (n_blocks_of(*run) - 1 - index) * block_tokens;
      const QueryBlock block{run, first, std::min(block_tokens, run->n_tokens - first),
                             item / n_blocks};
      attend_block(step, job, block, thread);
    }
  };
  step.pool.parallel_for(n_blocks * op.n_groups, 1, work);
}

// Decode over a long cache: (run, KV head, tile) are the items, so that few heads still fill all
// threads. Each tile is attended from an empty state; the states are then folded in index order,
// which gives the bits of attend_by_block().
struct TileStates {
  const AttentionScratch& scratch;  // strides
  float* memory;                    // [items, floats_per_item]
  std::size_t n_queries;

  std::size_t floats_per_item() const { return tile_state_floats(n_queries, scratch.o_stride); }
  kernels::AttendState at(std::size_t item) const {
    float* state = memory + item * floats_per_item();
    const std::size_t rows = base::round_up(n_queries, 16);
    return {state, state + rows, state + 2 * rows, scratch.o_stride};
  }
};

void attend_by_tile(Step& step, const Job& job) {
  const Attention& op = job.op;
  const contract::Attention& spec = *op.spec;
  const std::size_t n_groups = op.n_groups, n_runs = step.runs.size();
  const TileStates states{step.scratch.attention[0], step.scratch.tile_states.data(),
                          group_heads(op)};
  std::size_t n_tiles = 0;  // of the longest run; shorter ones leave the rest empty
  for (const Run& run : step.runs)
    n_tiles = std::max(n_tiles, (keys_of(op, run) + kTileTokens - 1) / kTileTokens);
  const auto block_of = [&](std::size_t pair) {
    return QueryBlock{&step.runs[pair / n_groups], 0, 1, pair % n_groups};
  };
  const auto tile_of = [&](std::size_t item) {
    const QueryBlock block = block_of(item / n_tiles);
    return tile_at(step, op, block, item % n_tiles * kTileTokens, keys_of(op, *block.run));
  };
  const std::size_t n_items = n_runs * n_groups * n_tiles;
  auto tiles = [&](std::size_t begin, std::size_t end, std::size_t thread) {
    Tile tile = tile_of(begin);
    std::size_t prepared_pair = n_runs * n_groups;  // whose queries lie in scratch
    for (std::size_t item = begin; item < end; ++item) {
      const Tile next = item + 1 < n_items ? tile_of(item + 1) : Tile{};  // most often this thread's too
      const QueryBlock block = block_of(item / n_tiles);
      const AttentionScratch& scratch = step.scratch.attention[thread];
      if (item / n_tiles != prepared_pair) prepare_queries(step, job, block, scratch);
      prepared_pair = item / n_tiles;
      kernels::AttendArgs args = attend_args(step, job, block, scratch);
      clear_states(states.at(item), args.n_queries);
      args.state = states.at(item);
      run_tile(step, op, block, scratch, args, tile, next);
      tile = next;
    }
  };
  // Tiles of one thread follow each other, so that the next is fetched meanwhile; a thread has several turns.
  constexpr std::size_t kTurns = 4;
  step.pool.parallel_for(n_items, std::max<std::size_t>(1, n_items / (kTurns * step.pool.n_threads())), tiles);
  auto fold = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t pair = begin; pair < end; ++pair) {
      const kernels::AttendState first = states.at(pair * n_tiles);
      for (std::size_t tile = 1; tile < n_tiles; ++tile)
        step.model.kernels->merge_attention(first, states.at(pair * n_tiles + tile),
                                            states.n_queries, spec.d_v);
      finish_block(step, op, block_of(pair), first, job.out);
    }
  };
  step.pool.parallel_for(n_runs * n_groups, 1, fold);
}

}  // namespace

void attend(Step& step, const Attention& op, const Rows& q, const Rows& out,
            const Selection* selection) {
  const Job job{op, q, out, selection};
  const auto decodes_long = [&](const Run& run) {
    return run.n_tokens == 1 && keys_of(op, run) > kTileTokens;
  };
  const bool by_tile = step.pool.n_threads() > 1 && !step.runs.empty() &&
                       std::all_of(step.runs.begin(), step.runs.end(), decodes_long);
  if (by_tile)
    attend_by_tile(step, job);
  else
    attend_by_block(step, job);
}

std::size_t tile_state_floats(std::size_t n_queries, std::size_t o_stride) {
  return 2 * base::round_up(n_queries, 16) + n_queries * o_stride;
}

std::size_t group_heads(const Attention& op) {
  return op.spec->n_heads / op.n_groups;
}

std::size_t query_tokens(const Attention& op) {
  return std::max<std::size_t>(1, kQueryRows / group_heads(op));
}

}  // namespace quern::model
