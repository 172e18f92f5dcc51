#include "model/attention.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/round_up.hpp"
#include "model/linear.hpp"
#include "model/norm.hpp"

namespace quern::model {

using kernels::kBlockTokens;
using kernels::kTileBlocks;
using kernels::kTileTokens;

namespace {

constexpr std::size_t kQueryRows = 64;

std::size_t group_heads(const contract::Attention& spec) {
  return spec.n_heads / spec.n_kv_heads;
}

void project(Step& step, const Attention& op, const Rows& input, const Rows& q, const Rows& k,
             const Rows& v) {
  const LinearJob jobs[] = {{&op.q, q}, {&op.k, k}, {&op.v, v}};
  run_linears(step, input, std::span<const LinearJob>(jobs).first(op.owns_cache ? 3 : 1));
}

// Norm and rotation of the heads of one token, x [n_heads * d_k].
void place_heads(const Step& step, const Attention& op, const std::optional<Norm>& norm, float* x,
                 std::size_t n_heads, std::size_t token) {
  const kernels::Kernels& kernels = *step.model.kernels;
  const std::size_t d_k = op.spec->d_k;
  if (norm && op.spec->qk_norm->over == contract::QkNormOver::all) kernels.norm(norm->args, x, x);
  for (std::size_t head = 0; head < n_heads; ++head) {
    float* row = x + head * d_k;
    if (norm && op.spec->qk_norm->over != contract::QkNormOver::all) kernels.norm(norm->args, row, row);
    if (op.rope)
      kernels.rope(row, step.positions.cosine(*op.rope, token),
                   step.positions.sine(*op.rope, token), step.positions.half(*op.rope),
                   step.model.ropes[*op.rope]->layout == contract::RopeLayout::pairs);
  }
}

// Queries and keys at their positions; keys and values into the cache.
void place(Step& step, const Attention& op, const Rows& q, const Rows& k, const Rows& v) {
  const contract::Attention& spec = *op.spec;
  const kernels::CacheLayout& layout = step.cache.layout(op.cache_layer);
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t t = begin; t < end; ++t) {
      place_heads(step, op, op.q_norm, q.row(t), spec.n_heads, t);
      if (!op.owns_cache) continue;
      place_heads(step, op, op.k_norm, k.row(t), spec.n_kv_heads, t);
      const TokenPlace& token = step.tokens[t];
      for (std::size_t head = 0; head < spec.n_kv_heads; ++head)
        step.model.kernels->store_kv(
            layout, k.row(t) + head * spec.d_k, v.row(t) + head * spec.d_v,
            step.cache.block(op.cache_layer, token.sequence, head, token.position),
            token.position % kBlockTokens);
    }
  };
  for_tokens(step, step.n_tokens(), work);
}

// One item: consecutive tokens of one run, the query heads of one KV head.
struct QueryBlock {
  const Run* run;
  std::size_t first, n_tokens;  // within the run
  std::size_t kv_head;
};

void clear_states(const kernels::AttendState& states, std::size_t n_queries) {
  std::fill_n(states.max, n_queries, -std::numeric_limits<float>::infinity());
  std::fill_n(states.sum, n_queries, 0.0F);
  std::fill_n(states.o, n_queries * states.o_stride, 0.0F);
}

// Gathers the queries [n_tokens * group, d_k] and their visible keys.
void prepare_queries(const Attention& op, const Rows& q, const QueryBlock& block,
                     const AttentionScratch& scratch) {
  const contract::Attention& spec = *op.spec;
  const std::size_t group = group_heads(spec);
  for (std::size_t i = 0; i < block.n_tokens * group; ++i) {
    const std::size_t token = block.first + i / group;
    const std::size_t head = block.kv_head * group + i % group;
    const std::size_t end = block.run->first_position + token + 1;
    std::memcpy(scratch.q.data() + i * scratch.q_stride,
                q.row(block.run->first_token + token) + head * spec.d_k, spec.d_k * sizeof(float));
    scratch.end[i] = static_cast<std::uint32_t>(end);
    scratch.begin[i] = static_cast<std::uint32_t>(
        spec.mask.window && end > *spec.mask.window ? end - *spec.mask.window : 0);
    if (spec.alibi) scratch.alibi[i] = spec.alibi->slopes[head];
  }
}

kernels::AttendArgs attend_args(const Step& step, const Attention& op, const QueryBlock& block,
                                const AttentionScratch& scratch) {
  const contract::Attention& spec = *op.spec;
  kernels::AttendArgs args{};
  args.layout = &step.cache.layout(op.cache_layer);
  args.n_queries = block.n_tokens * group_heads(spec);
  args.q = scratch.q.data();
  args.q_stride = scratch.q_stride;
  args.begin = scratch.begin.data();
  args.end = scratch.end.data();
  args.sinks = spec.mask.window ? static_cast<std::uint32_t>(spec.mask.sinks) : 0;
  args.scale = static_cast<float>(spec.scale);
  args.softcap = static_cast<float>(spec.softcap.value_or(0.0));
  args.alibi = spec.alibi ? scratch.alibi.data() : nullptr;
  args.alibi_before_scale = spec.alibi && spec.alibi->before_scale;
  args.state = {scratch.max.data(), scratch.sum.data(), scratch.o.data(), scratch.o_stride};
  args.scratch = scratch.kernel.data();
  return args;
}

std::size_t keys_of(const QueryBlock& block) {
  return block.run->first_position + block.first + block.n_tokens;
}

// The tile of keys from `key` on, unless no query of the block sees any of them.
void run_tile(const Step& step, const Attention& op, const QueryBlock& block,
              kernels::AttendArgs& args, std::size_t key) {
  const std::size_t n_keys = keys_of(block), first_seen = args.begin[0];
  if (key + kTileTokens <= first_seen && key >= args.sinks) return;
  std::array<const std::byte*, kTileBlocks> blocks;
  args.first_key = key;
  args.n_blocks = (std::min(n_keys - key, kTileTokens) + kBlockTokens - 1) / kBlockTokens;
  for (std::size_t b = 0; b < args.n_blocks; ++b)
    blocks[b] = step.cache.block(op.cache_layer, block.run->sequence, block.kv_head,
                                 key + b * kBlockTokens);
  args.blocks = blocks.data();
  step.model.kernels->attend(args);
}

// Finished states of the block's queries -> rows of `out`.
void finish_block(const Step& step, const Attention& op, const QueryBlock& block,
                  const kernels::AttendState& states, const Rows& out) {
  const contract::Attention& spec = *op.spec;
  const std::size_t group = group_heads(spec);
  for (std::size_t t = 0; t < block.n_tokens; ++t) {
    const std::size_t first = t * group;
    const std::size_t head = block.kv_head * group;
    const kernels::AttendState state{states.max + first, states.sum + first,
                                     states.o + first * states.o_stride, states.o_stride};
    step.model.kernels->finish_attention(
        state, group, spec.d_v, out.row(block.run->first_token + block.first + t) + head * spec.d_v,
        spec.d_v, op.sink_logits == nullptr ? nullptr : op.sink_logits + head);
  }
}

// All tiles in index order: a tile's state does not depend on the other queries, so bits do not depend
// on how tokens are cut into blocks.
void attend_block(const Step& step, const Attention& op, const Rows& q, const QueryBlock& block,
                  const Rows& out, std::size_t thread) {
  const AttentionScratch& scratch = step.scratch.attention[thread];
  prepare_queries(op, q, block, scratch);
  kernels::AttendArgs args = attend_args(step, op, block, scratch);
  clear_states(args.state, args.n_queries);
  for (std::size_t key = 0; key < keys_of(block); key += kTileTokens)
    run_tile(step, op, block, args, key);
  finish_block(step, op, block, args.state, out);
}

// Items: heads outermost, so that a head's keys stay in cache; within a run the last block, which
// sees the most keys, goes first.
void attend_by_block(Step& step, const Attention& op, const Rows& q, const Rows& out) {
  const std::size_t block_tokens = query_tokens(*op.spec);
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
      attend_block(step, op, q, block, out, thread);
    }
  };
  step.pool.parallel_for(n_blocks * op.spec->n_kv_heads, 1, work);
}

// Decode over a long cache: (run, KV head, tile) are the items, so that few heads still fill all
// threads. Each tile is attended from an empty state; the states are then folded in index order, which
// gives the bits of attend_by_block().
struct TileStates {
  const AttentionScratch& scratch;   // strides
  float* memory;                     // [items, floats_per_item]
  std::size_t n_queries;

  std::size_t floats_per_item() const { return tile_state_floats(n_queries, scratch.o_stride); }
  kernels::AttendState at(std::size_t item) const {
    float* state = memory + item * floats_per_item();
    const std::size_t rows = base::round_up(n_queries, 16);
    return {state, state + rows, state + 2 * rows, scratch.o_stride};
  }
};

void attend_by_tile(Step& step, const Attention& op, const Rows& q, const Rows& out) {
  const contract::Attention& spec = *op.spec;
  const std::size_t n_heads = spec.n_kv_heads, n_runs = step.runs.size();
  const TileStates states{step.scratch.attention[0], step.scratch.tile_states.data(), group_heads(spec)};
  std::size_t n_tiles = 0;   // of the longest run; shorter ones leave the rest empty
  for (const Run& run : step.runs)
    n_tiles = std::max(n_tiles, (run.first_position + kTileTokens) / kTileTokens);
  const auto block_of = [&](std::size_t pair) {
    return QueryBlock{&step.runs[pair / n_heads], 0, 1, pair % n_heads};
  };
  auto tiles = [&](std::size_t begin, std::size_t end, std::size_t thread) {
    for (std::size_t item = begin; item < end; ++item) {
      const QueryBlock block = block_of(item / n_tiles);
      prepare_queries(op, q, block, step.scratch.attention[thread]);
      kernels::AttendArgs args = attend_args(step, op, block, step.scratch.attention[thread]);
      clear_states(states.at(item), args.n_queries);
      args.state = states.at(item);
      const std::size_t key = item % n_tiles * kTileTokens;
      if (key < keys_of(block)) run_tile(step, op, block, args, key);
    }
  };
  step.pool.parallel_for(n_runs * n_heads * n_tiles, 1, tiles);
  auto fold = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t pair = begin; pair < end; ++pair) {
      const kernels::AttendState first = states.at(pair * n_tiles);
      for (std::size_t tile = 1; tile < n_tiles; ++tile)
        step.model.kernels->merge_attention(first, states.at(pair * n_tiles + tile), states.n_queries,
                                            spec.d_v);
      finish_block(step, op, block_of(pair), first, out);
    }
  };
  step.pool.parallel_for(n_runs * n_heads, 1, fold);
}

void attend(Step& step, const Attention& op, const Rows& q, const Rows& out) {
  const auto decodes_long = [](const Run& run) {
    return run.n_tokens == 1 && run.first_position >= kTileTokens;
  };
  const bool by_tile = step.pool.n_threads() > 1 && !step.runs.empty() &&
                       std::all_of(step.runs.begin(), step.runs.end(), decodes_long);
  if (by_tile)
    attend_by_tile(step, op, q, out);
  else
    attend_by_block(step, op, q, out);
}

}  // namespace

std::size_t tile_state_floats(std::size_t n_queries, std::size_t o_stride) {
  return 2 * base::round_up(n_queries, 16) + n_queries * o_stride;
}

std::size_t query_tokens(const contract::Attention& spec) {
  return std::max<std::size_t>(1, kQueryRows / group_heads(spec));
}

void run_attention(Step& step, const Attention& op, const Rows& input, const Rows& out) {
  const contract::Attention& spec = *op.spec;
  const std::size_t n = step.n_tokens();
  const Rows q = step.scratch.q.rows(n, spec.n_heads * spec.d_k);
  const Rows k = step.scratch.k.rows(n, spec.n_kv_heads * spec.d_k);
  const Rows v = step.scratch.v.rows(n, spec.n_kv_heads * spec.d_v);
  const Rows attended = step.scratch.attended.rows(n, spec.n_heads * spec.d_v);
  project(step, op, input, q, k, v);
  place(step, op, q, k, v);
  attend(step, op, q, attended);
  run_linear(step, attended, op.o, out);
}

}  // namespace quern::model
