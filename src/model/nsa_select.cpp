#include <algorithm>
#include <limits>

#include "model/indexer.hpp"
#include "model/nsa.hpp"

namespace quern::model {

using kernels::kBlockTokens;

namespace {

// One token and KV head, and the memory of the thread that has it.
struct Item {
  std::size_t token, kv_head;
  NsaThread& memory;
};

// memory.sum [rows] = the softmax over the compressed rows, summed over the query heads, ascending.
void sum_scores(const Step& step, const Nsa& op, const Rows& q, const Item& item,
                std::size_t n_rows) {
  const contract::Nsa& spec = *op.spec;
  const std::size_t group = spec.n_heads / spec.n_kv_heads, stride = item.memory.stride;
  const TokenPlace& place = step.tokens[item.token];
  const std::size_t layer = op.compressed.cache_layer, first_row = place.cache_row - place.position;
  for (std::size_t row = 0; row < n_rows; row += kBlockTokens)
    step.model.kernels->score_keys(
        {&step.cache.layout(layer),
         step.cache.block(layer, place.cache_sequence, item.kv_head, first_row + row), group,
         q.row(item.token) + item.kv_head * group * spec.d_k, spec.d_k,
         static_cast<float>(spec.scale), item.memory.scores.data() + row, stride,
         item.memory.kernel.data()});
  float* sum = item.memory.sum.data();
  std::fill_n(sum, n_rows, 0.0F);
  for (std::size_t h = 0; h < group; ++h) {
    float* scores = item.memory.scores.data() + h * stride;
    step.model.kernels->softmax(scores, n_rows);
    step.model.kernels->add(sum, scores, n_rows);
  }
}

// Formula 9, whose indices begin at 1: block j has the sum over m < l'/d, n < l/d of p[l'/d j - m -
// n].
float importance(const contract::Nsa& spec, const float* p, std::size_t n_rows, std::size_t block) {
  const std::size_t ratio = spec.select_block / spec.compress_stride;
  const std::size_t overlap = spec.compress_block / spec.compress_stride;
  float sum = 0.0F;
  for (std::size_t m = 0; m < ratio; ++m)
    for (std::size_t n = 0; n < overlap; ++n) {
      const std::size_t index = ratio * (block + 1);
      if (index > m + n && index - m - n <= n_rows) sum += p[index - m - n - 1];
    }
  return sum;
}

void take_block(const contract::Nsa& spec, std::size_t block, std::size_t n_keys,
                std::uint32_t* bits) {
  const std::size_t end = std::min((block + 1) * spec.select_block, n_keys);
  for (std::size_t key = block * spec.select_block; key < end; ++key)
    bits[key / 32] |= 1U << (key % 32);
}

void select(const Step& step, const Nsa& op, const Rows& q, const Item& item, std::uint32_t* bits) {
  const contract::Nsa& spec = *op.spec;
  const std::size_t n_keys = step.tokens[item.token].position + 1;
  const std::size_t n_blocks = (n_keys + spec.select_block - 1) / spec.select_block;
  std::fill_n(bits, (n_keys + 31) / 32, 0U);
  if (n_blocks <= spec.n_selected) {
    for (std::size_t b = 0; b < n_blocks; ++b) take_block(spec, b, n_keys, bits);
    return;
  }
  const std::size_t n_rows = op.compressed_rows(n_keys);
  if (n_rows > 0) sum_scores(step, op, q, item, n_rows);
  float* score = item.memory.blocks.data();
  for (std::size_t b = 0; b < n_blocks; ++b) {
    const bool always = b < spec.n_initial || b + spec.n_local >= n_blocks;
    score[b] = always ? std::numeric_limits<float>::infinity()
                      : importance(spec, item.memory.sum.data(), n_rows, b);
  }
  std::uint32_t* chosen = item.memory.chosen.data();
  select_best(score, n_blocks, spec.n_selected, item.memory.sorted.data(), chosen);
  for (std::size_t b = 0; b < n_blocks; ++b)
    if ((chosen[b / 32] >> (b % 32) & 1U) != 0) take_block(spec, b, n_keys, bits);
}

}  // namespace

Selection select_blocks(Step& step, const Nsa& op, const Rows& q) {
  NsaScratch& memory = step.scratch.nsa;
  const std::size_t n_heads = op.spec->n_kv_heads;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t thread) {
    for (std::size_t i = begin; i < end; ++i)
      select(step, op, q, {i / n_heads, i % n_heads, memory.threads[thread]},
             memory.bits.data() + i * memory.words);
  };
  step.pool.parallel_for(q.n * n_heads, 1, work);
  return {memory.bits.data(), memory.words, n_heads};
}

}  // namespace quern::model
