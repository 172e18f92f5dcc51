// The lightning indexer: which top_k keys each query of a latent attention sees. Its keys have a
// cache layer of their own; scores are f32, NaN is below everything. A query that has no more than
// top_k keys sees all of them. Equal scores at the boundary (relu gives exact zeros) are taken as
// the reference implementation takes them, which depends on the declared total length of the
// request (select_as_reference).
#pragma once

#include "model/attend.hpp"
#include "model/step.hpp"

namespace quern::model {

inline constexpr std::size_t kScoredTokens = 32;  // whose scores are held at a time

// What the projections of the indexer give for the new tokens.
struct IndexRows {
  Rows q;        // [tokens, n_heads * d_k]
  Rows k;        // [tokens, d_k]
  Rows weights;  // [tokens, n_heads]
};
IndexRows index_rows(Step& step, const Indexer& op, std::size_t n_tokens);

// Places the keys into the cache and chooses. False: every query sees all its keys, `selection` is
// not set.
bool select_keys(Step& step, const Indexer& op, const IndexRows& rows, Selection& selection);

// Bits of the n best of scores [n_scores], ties to the lower index; NaN counts as -infinity and is
// replaced by it. `memory`: n_scores floats. bits: (n_scores + 31) / 32 words. Whether a tie
// decided what was taken.
bool select_best(float* scores, std::size_t n_scores, std::size_t n, float* memory,
                 std::uint32_t* bits);

// The same with ties as topk() of PyTorch on a CPU has them, for a row of `total` >= n_scores
// scores whose end is masked: what std::nth_element (std::partial_sort where 64 n <= total) leaves
// in front. `memory`: `total`.
void select_as_reference(const float* scores, std::size_t n_scores, std::size_t n,
                         std::size_t total, ScoredKey* memory, std::uint32_t* bits);

}  // namespace quern::model
