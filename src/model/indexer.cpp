#include "model/indexer.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "model/norm.hpp"

namespace quern::model {

using kernels::kBlockTokens;

namespace {

constexpr std::size_t kScoredBlocks = 32;  // of one item

void rotate(const Step& step, const Indexer& op, std::size_t token, float* x) {
  if (!op.rope) return;
  step.model.kernels->rope(x, step.positions.cosine(*op.rope, token),
                           step.positions.sine(*op.rope, token), step.positions.half(*op.rope),
                           step.model.ropes[*op.rope]->layout == contract::RopeLayout::pairs);
}

void place(Step& step, const Indexer& op, const IndexRows& rows) {
  const contract::Indexer& spec = *op.spec;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t t = begin; t < end; ++t) {
      for (std::size_t h = 0; h < spec.n_heads; ++h)
        rotate(step, op, t, rows.q.row(t) + h * spec.d_k);
      step.model.kernels->norm(op.k_norm.args, rows.k.row(t), rows.k.row(t));
      rotate(step, op, t, rows.k.row(t));
      const TokenPlace& token = step.tokens[t];
      step.model.kernels->store_kv(
          step.cache.layout(op.cache_layer), rows.k.row(t), nullptr,
          step.cache.block(op.cache_layer, token.cache_sequence, 0, token.cache_row),
          token.cache_row % kBlockTokens);
    }
  };
  for_tokens(step, rows.k.n, work);
}

std::size_t n_keys(const Step& step, std::size_t token) {
  return step.tokens[token].position + 1;
}

// scores [32] of one block's keys: sum over the heads, ascending, of weight * relu(scale q.k).
void score_block(const Step& step, const Indexer& op, const IndexRows& rows, std::size_t token,
                 std::size_t block, float* memory, float* scores) {
  const contract::Indexer& spec = *op.spec;
  const TokenPlace& place = step.tokens[token];
  const std::size_t first_row = place.cache_row - place.position;
  float* by_head = memory;
  step.model.kernels->score_keys(
      {&step.cache.layout(op.cache_layer),
       step.cache.block(op.cache_layer, place.cache_sequence, 0, first_row + block * kBlockTokens),
       spec.n_heads, rows.q.row(token), spec.d_k, static_cast<float>(spec.scale), by_head,
       kBlockTokens, memory + spec.n_heads * kBlockTokens});
  std::fill_n(scores, kBlockTokens, 0.0F);
  for (std::size_t h = 0; h < spec.n_heads; ++h)
    step.model.kernels->add_relu(scores, by_head + h * kBlockTokens, rows.weights.row(token)[h],
                                 kBlockTokens);
}

// Scores of tokens [first, first + n) into scratch.index.scores [n, stride].
void score_tokens(Step& step, const Indexer& op, const IndexRows& rows, std::size_t first,
                  std::size_t n) {
  IndexScratch& memory = step.scratch.index;
  std::size_t most_blocks = 0;
  for (std::size_t t = first; t < first + n; ++t)
    most_blocks = std::max(most_blocks, (n_keys(step, t) + kBlockTokens - 1) / kBlockTokens);
  const std::size_t n_parts = (most_blocks + kScoredBlocks - 1) / kScoredBlocks;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t thread) {
    for (std::size_t item = begin; item < end; ++item) {
      const std::size_t token = first + item / n_parts;
      const std::size_t n_blocks = (n_keys(step, token) + kBlockTokens - 1) / kBlockTokens;
      const std::size_t block = item % n_parts * kScoredBlocks;
      for (std::size_t b = block; b < std::min(block + kScoredBlocks, n_blocks); ++b)
        score_block(step, op, rows, token, b, memory.by_head[thread].data(),
                    memory.scores.data() + (token - first) * memory.stride + b * kBlockTokens);
    }
  };
  step.pool.parallel_for(n * n_parts, 1, work);
}

void choose_tokens(Step& step, const Indexer& op, std::size_t first, std::size_t n) {
  IndexScratch& memory = step.scratch.index;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t thread) {
    for (std::size_t i = begin; i < end; ++i) {
      float* scores = memory.scores.data() + i * memory.stride;
      std::uint32_t* bits = memory.bits.data() + (first + i) * memory.words;
      const std::size_t n_scores = n_keys(step, first + i), top_k = op.spec->top_k;
      if (select_best(scores, n_scores, top_k, memory.sorted[thread].data(), bits))
        select_as_reference(scores, n_scores, top_k,
                            std::max(n_scores, step.tokens[first + i].total_length),
                            memory.tied[thread].data(), bits);
    }
  };
  step.pool.parallel_for(n, 1, work);
}

}  // namespace

bool select_best(float* scores, std::size_t n_scores, std::size_t n, float* memory,
                 std::uint32_t* bits) {
  std::fill_n(bits, (n_scores + 31) / 32, 0U);
  const auto take = [&](std::size_t i) { bits[i / 32] |= 1U << (i % 32); };
  if (n >= n_scores) {
    for (std::size_t i = 0; i < n_scores; ++i) take(i);
    return false;
  }
  for (std::size_t i = 0; i < n_scores; ++i) {
    if (scores[i] != scores[i]) scores[i] = -std::numeric_limits<float>::infinity();
    memory[i] = scores[i];
  }
  std::nth_element(memory, memory + (n - 1), memory + n_scores, std::greater<float>());
  const float least = memory[n - 1];
  std::size_t left = n;
  for (std::size_t i = 0; i < n_scores; ++i)
    if (scores[i] > least) {
      take(i);
      --left;
    }
  std::size_t equal = 0;
  for (std::size_t i = 0; i < n_scores; ++i)
    if (scores[i] == least && equal++ < left) take(i);
  return equal > left;
}

void select_as_reference(const float* scores, std::size_t n_scores, std::size_t n,
                         std::size_t total, ScoredKey* memory, std::uint32_t* bits) {
  for (std::size_t i = 0; i < total; ++i)
    memory[i] = {i < n_scores ? scores[i] : -std::numeric_limits<float>::infinity(),
                 static_cast<std::uint32_t>(i)};
  const auto above = [](const ScoredKey& a, const ScoredKey& b) { return a.score > b.score; };
  if (64 * n <= total)
    std::partial_sort(memory, memory + n, memory + total, above);
  else
    std::nth_element(memory, memory + (n - 1), memory + total, above);
  std::fill_n(bits, (n_scores + 31) / 32, 0U);
  for (std::size_t i = 0; i < n; ++i)
    if (memory[i].key < n_scores) bits[memory[i].key / 32] |= 1U << (memory[i].key % 32);
}

IndexRows index_rows(Step& step, const Indexer& op, std::size_t n_tokens) {
  const IndexScratch& memory = step.scratch.index;
  return {memory.q.rows(n_tokens, op.spec->n_heads * op.spec->d_k),
          memory.k.rows(n_tokens, op.spec->d_k), memory.weights.rows(n_tokens, op.spec->n_heads)};
}

bool select_keys(Step& step, const Indexer& op, const IndexRows& rows, Selection& selection) {
  place(step, op, rows);
  const std::size_t n = rows.k.n;
  bool chooses = false;
  for (std::size_t t = 0; t < n; ++t) chooses |= n_keys(step, t) > op.spec->top_k;
  if (!chooses) return false;
  for (std::size_t first = 0; first < n; first += kScoredTokens) {
    const std::size_t count = std::min(kScoredTokens, n - first);
    score_tokens(step, op, rows, first, count);
    choose_tokens(step, op, first, count);
  }
  selection = {step.scratch.index.bits.data(), step.scratch.index.words, 1};
  return true;
}

}  // namespace quern::model
