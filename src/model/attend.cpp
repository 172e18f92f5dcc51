#include "model/attend.hpp"

#include <algorithm>

#include "base/round_up.hpp"
#include "model/query_block.hpp"

namespace quern::model {

using kernels::kTileTokens;

namespace {

constexpr std::size_t kQueryRows = 64;

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
      const QueryBlock block{run, first, std::min(block_tokens, run->n_tokens - first), item / n_blocks};
      attend_block(step, job, block, thread);
    }
  };
  step.pool.parallel_for(n_blocks * op.n_groups, 1, work);
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
