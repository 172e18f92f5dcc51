// Attention item by item: the queries of one group of heads, gathered once, meet the keys of their cache tile by tile.
// Not here: which thread takes which items, and in what order states meet (attend.cpp, attend_decode.cpp).
#pragma once

#include <array>

#include "model/attend.hpp"

namespace quern::model {

// Consecutive tokens of one run, the query heads of one group.
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

// Gathers the queries [n_tokens * group], as the kernels take them, and their visible keys.
void prepare_queries(const Step& step, const Job& job, const QueryBlock& block, const AttentionScratch& scratch);
// For the queries prepared so, with the state in scratch; run_tile() adds the tile's part.
kernels::AttendArgs attend_args(const Step& step, const Job& job, const QueryBlock& block, const AttentionScratch& scratch);

// Cache blocks of one tile.
struct Tile {
  std::size_t first_key = 0, n_blocks = 0;
  std::array<const std::byte*, kernels::kTileBlocks> blocks;
};

// How many keys the run's last token sees, those before its window included.
std::size_t keys_of(const Attention& op, const Run& run);
// Of the keys [key, n_keys) the first tile; none where there is no such key.
Tile tile_at(const Step& step, const Attention& op, const QueryBlock& block, std::size_t key, std::size_t n_keys);

// A tile of keys, unless no query of the block sees any of them; `next`: the tile to come.
void run_tile(const Step& step, const Attention& op, const QueryBlock& block, const AttentionScratch& scratch,
              kernels::AttendArgs& args, const Tile& tile, const Tile& next);

KvCache& cache_of(const Step& step, const Attention& op);  // the encoder's side or the step's own
void clear_states(const kernels::AttendState& states, std::size_t n_queries);
// Finished states of the block's queries -> rows of `out`.
void finish_block(const Step& step, const Attention& op, const QueryBlock& block, const kernels::AttendState& states,
                  const Rows& out);

// Decode over long caches: every run of the step is one token (attend_decode.cpp).
void attend_by_tile(Step& step, const Job& job);

}  // namespace quern::model
