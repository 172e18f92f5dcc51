#include "model/nsa_scratch.hpp"

#include <algorithm>

#include "base/round_up.hpp"
#include "model/model.hpp"
#include "model/step.hpp"

namespace quern::model {

using base::round_up;

namespace {

// Largest of each number over the model's native sparse attention.
struct Need {
  std::size_t k = 0, v = 0, gates = 0, attended = 0, flat_k = 0, flat_v = 0, hidden = 0, d_k = 0,
              d_v = 0;
  std::size_t n_kv_heads = 0, group = 0, rows = 0, blocks = 0, kernel = 0;

  void add(const Nsa& op, std::size_t max_tokens) {
    const contract::Nsa& spec = *op.spec;
    k = std::max(k, spec.n_kv_heads * spec.d_k);
    v = std::max(v, spec.n_kv_heads * spec.d_v);
    gates = std::max(gates, 3 * spec.n_heads);
    attended = std::max(attended, spec.n_heads * spec.d_v);
    flat_k = std::max(flat_k, spec.compress_block * spec.d_k);
    flat_v = std::max(flat_v, spec.compress_block * spec.d_v);
    hidden = std::max(hidden, spec.compress_hidden);
    d_k = std::max(d_k, spec.d_k);
    d_v = std::max(d_v, spec.d_v);
    n_kv_heads = std::max(n_kv_heads, spec.n_kv_heads);
    group = std::max(group, spec.n_heads / spec.n_kv_heads);
    rows = std::max(rows, op.compressed_rows(max_tokens));
    blocks = std::max(blocks, max_tokens / spec.select_block + 1);
    kernel = std::max(kernel,
                      kernels::score_scratch_floats(kernels::make_cache_layout(
                          kernels::CacheType::f32, kernels::CacheType::f32, spec.d_k, spec.d_v)));
  }
};

NsaThread thread_scratch(const Need& need) {
  NsaThread scratch;
  scratch.stride = round_up(need.rows, kernels::kBlockTokens);
  scratch.scores = LazyArray<float>(need.group * scratch.stride);
  scratch.sum = LazyArray<float>(scratch.stride);
  scratch.blocks = LazyArray<float>(need.blocks);
  scratch.sorted = LazyArray<float>(need.blocks);
  scratch.chosen = LazyArray<std::uint32_t>(need.blocks / 32 + 1);
  scratch.kernel = LazyArray<float>(need.kernel);
  return scratch;
}

}  // namespace

NsaScratch::NsaScratch(const Model& model, const CacheExtent& extent, std::size_t max_chunk,
                       std::size_t n_threads) {
  Need need;
  for_branches(model, [&](const Branch& branch) {
    if (branch.nsa) need.add(*branch.nsa, extent.max_tokens);
  });
  if (need.k == 0) return;
  for (RowBuffer& buffer : k) buffer = RowBuffer(max_chunk, need.k);
  for (RowBuffer& buffer : v) buffer = RowBuffer(max_chunk, need.v);
  for (RowBuffer& buffer : attended) buffer = RowBuffer(max_chunk, need.attended);
  gates = RowBuffer(max_chunk, need.gates);
  flat_k = RowBuffer(max_chunk, need.flat_k);
  flat_v = RowBuffer(max_chunk, need.flat_v);
  hidden = RowBuffer(max_chunk, need.hidden);
  row_k = RowBuffer(max_chunk, need.d_k);
  row_v = RowBuffer(max_chunk, need.d_v);
  words = round_up(extent.max_tokens, kernels::kTileTokens) / 32;
  bits = LazyArray<std::uint32_t>(max_chunk * need.n_kv_heads * words);
  for (std::size_t thread = 0; thread < n_threads; ++thread)
    threads.push_back(thread_scratch(need));
}

std::size_t NsaScratch::bytes() const {
  std::size_t total = bits.bytes();
  for (const RowBuffer* buffer : {&k[0], &k[1], &k[2], &v[0], &v[1], &v[2], &gates, &attended[0],
                                  &attended[1], &flat_k, &flat_v, &hidden, &row_k, &row_v})
    total += buffer->memory.bytes();
  for (const NsaThread& memory : threads)
    total += memory.scores.bytes() + memory.sum.bytes() + memory.blocks.bytes() * 2 +
             memory.chosen.bytes() + memory.kernel.bytes();
  return total;
}

}  // namespace quern::model
