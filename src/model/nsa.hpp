// Native sparse attention: three attentions of the same queries over keys and values of their own,
// added with a sigmoid gate per head: compressed blocks, the blocks that these find important, and
// a window. nsa_compress.cpp makes the rows of the first, nsa_select.cpp chooses for the second.
#pragma once

#include "model/attend.hpp"
#include "model/step.hpp"

namespace quern::model {

void run_nsa(Step& step, const Nsa& op, const LazyRows& input, const Rows& out);

// phi of every block of compress_block tokens that the step's tokens complete, from the cached keys
// and values of the compress branch into its compressed rows.
void compress_blocks(Step& step, const Nsa& op);

// Importance of the selection blocks for each token and KV head (formula 9 of the paper: the
// compressed scores of its query heads, summed over the compressed blocks that overlap a selection
// block), and the bits of the keys of the n_selected blocks: the first, the newest and the most
// important ones, ties to the earlier.
Selection select_blocks(Step& step, const Nsa& op, const Rows& q);

}  // namespace quern::model
