// Multi-head latent attention. The cache holds one row per token for all heads: the normed latent
// and the rotated key. Two forms of one result:
//  absorbed: q_nope W_uk meets the latents themselves, one KV head for all query heads, then W_uv;
//  expanded (mla_expanded.cpp): keys and values of each head are made from the latents, tile by
//  tile.
// The first costs less for few tokens, the second for long chunks; they agree to rounding, not in
// bits, so a deterministic step is absorbed throughout. Not here: which keys an indexer chooses
// (indexer.hpp).
#pragma once

#include "model/attend.hpp"
#include "model/step.hpp"

namespace quern::model {

void run_mla(Step& step, const Mla& op, const LazyRows& input, const Rows& out);

// Tokens of a chunk from which the expanded form takes fewer multiplications; SIZE_MAX: never.
std::size_t expanded_from(const contract::Mla& spec);

// mla_expanded.cpp: q [tokens, n_heads * (d_nope + d_rope)] -> attended [tokens, n_heads * d_v].
void attend_expanded(Step& step, const Mla& op, const Rows& q, const Selection* selection,
                     const Rows& attended);

// Rows [first_row, first_row + n_rows) of a float matrix on the calling thread: out.row(i)[0,
// n_rows) for every row i of `input`. `memory`: head_product_floats(n_rows), at most kHeadTokens
// rows are taken at a time.
void multiply_rows(const Linear& linear, std::size_t first_row, std::size_t n_rows,
                   const Rows& input, const Rows& out, float* memory);
inline constexpr std::size_t kHeadTokens = 16;
std::size_t head_product_floats(std::size_t n_rows);

}  // namespace quern::model
