// Decode over a long cache: (run, group of heads, tile) are the items, so that few heads still fill all threads. A thread
// adds tiles to the state of their first one as long as it has taken all of them in order; others it attends from an
// empty state, and these are folded in index order, which gives the bits of attend_by_block() (attend.cpp).
#include <algorithm>

#include "base/round_up.hpp"
#include "model/query_block.hpp"

namespace quern::model {

using kernels::kTileTokens;

namespace {

// Softmax states [pairs, tiles] of the step. A pair is a run and a group of its heads.
struct TileStates {
  const AttentionScratch& scratch;  // strides
  float* memory;                    // [pairs * n_tiles, floats_per_item]
  std::size_t n_queries, n_tiles;

  kernels::AttendState at(std::size_t pair, std::size_t tile) const {
    const std::size_t rows = base::round_up(n_queries, 16);
    float* state = memory + (pair * n_tiles + tile) * tile_state_floats(n_queries, scratch.o_stride);
    return {state, state + rows, state + 2 * rows, scratch.o_stride};
  }
};

// Items [pairs, tiles] in the order in which threads go through them.
struct Items {
  const Step& step;
  const Attention& op;
  std::size_t n_pairs, n_tiles = 0;  // of the longest run; shorter ones leave the rest empty

  Items(const Step& step_, const Attention& op_) : step(step_), op(op_), n_pairs(step_.runs.size() * op_.n_groups) {
    for (const Run& run : step.runs) n_tiles = std::max(n_tiles, (keys_of(op, run) + kTileTokens - 1) / kTileTokens);
  }
  std::size_t size() const { return n_pairs * n_tiles; }
  QueryBlock block(std::size_t pair) const { return {&step.runs[pair / op.n_groups], 0, 1, pair % op.n_groups}; }
  Tile tile(std::size_t item) const {
    if (item >= size()) return {};
    const QueryBlock of = block(item / n_tiles);
    return tile_at(step, op, of, item % n_tiles * kTileTokens, keys_of(op, *of.run));
  }
};

// What no tile before could ask for.
void ask_for(const Tile& tile, std::size_t block_bytes) {
  for (std::size_t b = 0; b < tile.n_blocks; ++b)
    for (std::size_t at = 0; at < block_bytes; at += quant::kLineBytes) __builtin_prefetch(tile.blocks[b] + at);
}

}  // namespace

void attend_by_tile(Step& step, const Job& job) {
  const Attention& op = job.op;
  const Items items(step, op);
  const TileStates states{step.scratch.attention[0], step.scratch.tile_states.data(), group_heads(op), items.n_tiles};
  const std::size_t block_bytes = cache_of(step, op).layout(op.cache_layer).block_bytes;
  for (AttentionScratch& scratch : step.scratch.attention) scratch.decode = {};
  auto tiles = [&](std::size_t begin, std::size_t end, std::size_t thread) {
    AttentionScratch& scratch = step.scratch.attention[thread];
    DecodeTurn& turn = scratch.decode;
    Tile tile = items.tile(begin);
    if (turn.next_item != begin) ask_for(tile, block_bytes);  // no tile before did
    for (std::size_t item = begin; item < end; ++item) {
      const Tile next = items.tile(item + 1);  // most often this thread's too
      const std::size_t pair = item / items.n_tiles, index = item % items.n_tiles;
      const QueryBlock block = items.block(pair);
      if (turn.prepared != pair) prepare_queries(step, job, block, scratch);
      turn = {item + 1, pair, index == 0 || (turn.in_order && turn.next_item == item)};
      kernels::AttendArgs args = attend_args(step, job, block, scratch);
      args.state = states.at(pair, turn.in_order ? 0 : index);
      if (!turn.in_order || index == 0) clear_states(args.state, args.n_queries);
      if (turn.in_order) step.scratch.tiles_together[pair] = index + 1;
      run_tile(step, op, block, scratch, args, tile, next);
      tile = next;
    }
  };
  // Tiles of one thread follow each other, so that the next is fetched meanwhile; a thread has several turns.
  constexpr std::size_t kTurns = 4;
  step.pool.parallel_for(items.size(), std::max<std::size_t>(1, items.size() / (kTurns * step.pool.n_threads())), tiles);
  auto fold = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t pair = begin; pair < end; ++pair) {
      const kernels::AttendState first = states.at(pair, 0);
      for (std::size_t tile = step.scratch.tiles_together[pair]; tile < items.n_tiles; ++tile)
        step.model.kernels->merge_attention(first, states.at(pair, tile), states.n_queries, op.spec->d_v);
      finish_block(step, op, items.block(pair), first, job.out);
    }
  };
  step.pool.parallel_for(items.n_pairs, 1, fold);
}

}  // namespace quern::model
