#include "model/mla_scratch.hpp"

#include <algorithm>

#include "base/round_up.hpp"
#include "model/indexer.hpp"
#include "model/mla.hpp"
#include "model/model.hpp"

namespace quern::model {

using base::round_up;

namespace {

// Largest of each number over the model's latent attention.
struct Need {
  std::size_t q_rank = 0, kv = 0, absorbed = 0, latents = 0, product = 0;
  std::size_t d_k = 0, d_v = 0, kernel = 0, block_bytes = 0;
  bool any = false;

  void add(const contract::Mla& spec) {
    any = true;
    const std::size_t row = spec.kv_rank + spec.d_rope, width = spec.d_nope + spec.d_rope;
    q_rank = std::max(q_rank, spec.q_rank.value_or(0));
    kv = std::max(kv, row);
    absorbed = std::max(absorbed, spec.n_heads * row);
    latents = std::max(latents, spec.n_heads * spec.kv_rank);
    product = std::max({product, head_product_floats(spec.d_nope), head_product_floats(spec.d_v)});
    d_k = std::max(d_k, width);
    d_v = std::max(d_v, spec.d_v);
    const kernels::CacheLayout layout = kernels::make_cache_layout(
        kernels::CacheType::f32, kernels::CacheType::f32, width, spec.d_v);
    block_bytes = std::max(block_bytes, layout.block_bytes);
    kernel = std::max({kernel, kernels::attend_scratch_floats(kernels::kAttendQueries, layout),
                       kernels::expanded_k_floats(kernels::make_latent_layout(
                           kernels::CacheType::int8, spec.kv_rank, spec.d_rope))});
  }
};

ExpandedScratch expanded_scratch(const Need& need, std::size_t max_chunk) {
  constexpr std::size_t kRows = kernels::kTileTokens;
  ExpandedScratch scratch;
  scratch.latents = LazyArray<float>(kRows * round_up(need.kv, 16));
  scratch.q = LazyArray<float>(max_chunk * kernels::query_floats(need.d_k));
  scratch.k = LazyArray<float>(kRows * round_up(need.d_k, 16));
  scratch.v = LazyArray<float>(kRows * round_up(need.d_v, 16));
  scratch.blocks = LazyArray<std::byte>(kernels::kTileBlocks * need.block_bytes);
  scratch.max = LazyArray<float>(max_chunk);
  scratch.sum = LazyArray<float>(max_chunk);
  scratch.o = LazyArray<float>(max_chunk * round_up(need.d_v, 16));
  scratch.begin = LazyArray<std::uint32_t>(max_chunk);
  scratch.end = LazyArray<std::uint32_t>(max_chunk);
  scratch.selected = LazyArray<const std::uint32_t*>(max_chunk);
  scratch.kernel = LazyArray<float>(need.kernel);
  return scratch;
}

std::size_t bytes_of(const ExpandedScratch& scratch) {
  return scratch.latents.bytes() + scratch.q.bytes() + scratch.k.bytes() + scratch.v.bytes() + scratch.blocks.bytes() +
         scratch.max.bytes() * 4 + scratch.o.bytes() + scratch.selected.bytes() +
         scratch.kernel.bytes();
}

}  // namespace

MlaScratch::MlaScratch(const Model& model, std::size_t max_chunk, std::size_t n_threads) {
  Need need;
  for_branches(model, [&](const Branch& branch) {
    if (branch.mla) need.add(*branch.mla->spec);
  });
  if (!need.any) return;
  q_a = RowBuffer(max_chunk, need.q_rank);
  kv = RowBuffer(max_chunk, need.kv);
  absorbed = RowBuffer(max_chunk, need.absorbed);
  latents = RowBuffer(max_chunk, need.latents);
  for (std::size_t thread = 0; thread < n_threads; ++thread) {
    product.emplace_back(need.product);
    expanded.push_back(expanded_scratch(need, max_chunk));
  }
}

std::size_t MlaScratch::bytes() const {
  std::size_t total = 0;
  for (const RowBuffer* buffer : {&q_a, &kv, &absorbed, &latents}) total += buffer->memory.bytes();
  for (const LazyArray<float>& memory : product) total += memory.bytes();
  return total + expanded_bytes();
}

std::size_t MlaScratch::expanded_bytes() const {
  std::size_t total = 0;
  for (const ExpandedScratch& memory : expanded) total += bytes_of(memory);
  return total;
}

IndexScratch::IndexScratch(const Model& model, const CacheExtent& extent, std::size_t max_chunk,
                           std::size_t n_threads) {
  std::size_t n_heads = 0, q_width = 0, d_k = 0, floats = 0;
  for_branches(model, [&](const Branch& branch) {
    if (!branch.mla || !branch.mla->indexer) return;
    const contract::Indexer& spec = *branch.mla->indexer->spec;
    n_heads = std::max(n_heads, spec.n_heads);
    q_width = std::max(q_width, spec.n_heads * spec.d_k);
    d_k = std::max(d_k, spec.d_k);
    floats =
        std::max(floats, spec.n_heads * kernels::kBlockTokens +
                             kernels::score_scratch_floats(kernels::make_cache_layout(
                                 kernels::CacheType::f32, kernels::CacheType::f32, spec.d_k, 0)));
  });
  if (n_heads == 0) return;
  stride = round_up(extent.max_tokens, kernels::kTileTokens);
  words = stride / 32;
  q = RowBuffer(max_chunk, q_width);
  k = RowBuffer(max_chunk, d_k);
  weights = RowBuffer(max_chunk, n_heads);
  scores = LazyArray<float>(kScoredTokens * stride);
  bits = LazyArray<std::uint32_t>(max_chunk * words);
  for (std::size_t thread = 0; thread < n_threads; ++thread) {
    by_head.emplace_back(floats);
    sorted.emplace_back(stride);
    tied.emplace_back(stride);
  }
}

std::size_t IndexScratch::bytes() const {
  std::size_t total = scores.bytes() + bits.bytes();
  for (const RowBuffer* buffer : {&q, &k, &weights}) total += buffer->memory.bytes();
  for (const LazyArray<ScoredKey>& memory : tied) total += memory.bytes();
  for (const auto* list : {&by_head, &sorted})
    for (const LazyArray<float>& memory : *list) total += memory.bytes();
  return total;
}

}  // namespace quern::model
