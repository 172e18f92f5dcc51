#include "model/attention.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

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
  if (norm && op.spec->qk_norm->over_all_heads) kernels.norm(norm->args, x, x);
  for (std::size_t head = 0; head < n_heads; ++head) {
    float* row = x + head * d_k;
    if (norm && !op.spec->qk_norm->over_all_heads) kernels.norm(norm->args, row, row);
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

// Gathers the queries [n_tokens * group, d_k], their visible keys and an empty softmax state.
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
    scratch.max[i] = -std::numeric_limits<float>::infinity();
    scratch.sum[i] = 0;
    std::memset(scratch.o.data() + i * scratch.o_stride, 0, scratch.o_stride * sizeof(float));
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

// Every tile that some query of the block sees, in index order: a tile's state does not depend on
// the other queries, so bits do not depend on how tokens are cut into blocks.
void run_tiles(const Step& step, const Attention& op, const QueryBlock& block,
               kernels::AttendArgs& args) {
  const std::size_t n_keys = block.run->first_position + block.first + block.n_tokens;
  const std::size_t first_seen = args.begin[0];
  std::array<const std::byte*, kTileBlocks> blocks;
  for (std::size_t key = 0; key < n_keys; key += kTileTokens) {
    if (key + kTileTokens <= first_seen && key >= args.sinks) continue;
    args.first_key = key;
    args.n_blocks = (std::min(n_keys - key, kTileTokens) + kBlockTokens - 1) / kBlockTokens;
    for (std::size_t b = 0; b < args.n_blocks; ++b)
      blocks[b] = step.cache.block(op.cache_layer, block.run->sequence, block.kv_head,
                                   key + b * kBlockTokens);
    args.blocks = blocks.data();
    step.model.kernels->attend(args);
  }
}

void attend_block(const Step& step, const Attention& op, const Rows& q, const QueryBlock& block,
                  const Rows& out, std::size_t thread) {
  const contract::Attention& spec = *op.spec;
  const AttentionScratch& scratch = step.scratch.attention[thread];
  const std::size_t group = group_heads(spec);
  prepare_queries(op, q, block, scratch);
  kernels::AttendArgs args = attend_args(step, op, block, scratch);
  run_tiles(step, op, block, args);
  for (std::size_t t = 0; t < block.n_tokens; ++t) {
    const std::size_t first = t * group;
    const std::size_t head = block.kv_head * group;
    const kernels::AttendState state{args.state.max + first, args.state.sum + first,
                                     args.state.o + first * scratch.o_stride, scratch.o_stride};
    step.model.kernels->finish_attention(
        state, group, spec.d_v, out.row(block.run->first_token + block.first + t) + head * spec.d_v,
        spec.d_v, op.sink_logits == nullptr ? nullptr : op.sink_logits + head);
  }
}

// Items: heads outermost, so that a head's keys stay in cache; within a run the last block, which
// sees the most keys, goes first.
void attend(Step& step, const Attention& op, const Rows& q, const Rows& out) {
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

}  // namespace

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
