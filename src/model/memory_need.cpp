#include "model/memory_need.hpp"

#include <algorithm>

#include "model/forward.hpp"
#include "model/mla.hpp"
#include "model/step.hpp"

namespace quern::model {

namespace {

// The blocks that a prompt of n tokens takes, chunk by chunk as prefill does.
void fill(KvCache& cache, std::size_t sequence, std::size_t n, std::size_t chunk) {
  while (n > 0) {
    const std::size_t step = std::min(n, chunk);
    cache.reserve(sequence, step);
    cache.commit(sequence, step);
    n -= step;
  }
}

void add(CacheBytes& sum, const CacheBytes& one, std::uint64_t times) {
  sum.payload += times * one.payload;
  sum.scales += times * one.scales;
  sum.rounding += times * one.rounding;
  sum.metadata += times * one.metadata;
}

// Sequences take blocks of one pool, each as if it were alone.
void add_cache(const Model& model, const RunShape& shape, std::size_t chunk, MemoryNeed& need) {
  if (!model.decoder) return;
  const auto add_sequences = [&](std::uint64_t n, std::size_t tokens) {
    CacheOptions options = shape.cache;
    options.n_sequences = 1;
    KvCache cache(model, options);
    fill(cache, 0, tokens, chunk);
    add(need.cache, cache.bytes(), n);
    need.cache_touched += n * cache.touched_bytes();
  };
  const std::size_t context = shape.cache.max_tokens, n = shape.cache.n_sequences;
  add_sequences(shape.beams ? 1 : n, context);
  // A beam writes into a copy of the prompt's last block.
  if (shape.beams) add_sequences(n - 1, std::min(shape.own_tokens + kernels::kBlockTokens, context));
}

void add_source(const Model& model, const RunShape& shape, std::size_t chunk, MemoryNeed& need) {
  if (!model.encoder) return;
  const std::size_t n = shape.source_tokens;
  KvCache in_step(model.encoder->cache_layers, {kernels::CacheType::f32, kernels::CacheType::f32, 1,
                                                chunk * kernels::kBlockTokens});
  fill(in_step, 0, n, chunk);
  need.encoder_touched = in_step.touched_bytes();
  if (!model.decoder) return;
  CacheOptions options = shape.cache;
  options.max_tokens = chunk;
  options.n_sequences = 1;
  KvCache source(model.decoder->cross_layers, options);
  fill(source, 0, n, chunk);
  add(need.source, source.bytes(), shape.beams ? 1 : shape.cache.n_sequences);
}

// Of the steps of a run, which take `step` tokens and a rest of the context.
ScratchUse scratch_use(const Model& model, const RunShape& shape, std::size_t step) {
  ScratchUse use;
  use.n_outputs = std::min(shape.n_outputs, step);
  const std::size_t decoded = std::min(std::max<std::size_t>(shape.cache.n_sequences, 1), step);
  const std::size_t rest = shape.cache.max_tokens % step;
  for_branches(model, [&](const Branch& branch) {
    if (!branch.mla) return;
    const std::size_t least = shape.deterministic ? SIZE_MAX : expanded_from(*branch.mla->spec);
    use.expanded = use.expanded || step >= least;
    const std::size_t absorbed = step < least ? step : rest < least ? rest : 0;
    use.absorbed_tokens = std::max({use.absorbed_tokens, absorbed, decoded});
  });
  return use;
}

std::uint64_t position_bytes(const Model& model, std::size_t step) {
  std::uint64_t floats = 0;
  for (const contract::Rope* rope : model.ropes) floats += 2 * step * rope->inv_freq.size();
  return floats * sizeof(float) + step * sizeof(TokenPlace);
}

}  // namespace

MemoryNeed memory_need(const Model& model, const RunShape& shape) {
  MemoryNeed need;
  RunShape filled = shape;
  if (filled.cache.max_tokens == 0) filled.cache.max_tokens = model.contract.max_positions;
  if (!model.decoder) filled.source_tokens = filled.cache.max_tokens;
  const std::size_t context = filled.cache.max_tokens;
  const std::size_t chunk =
      std::max(chunk_for(model, {context, filled.source_tokens, 0}, std::max<std::size_t>(shape.prefill_chunk, 1)),
               filled.cache.n_sequences);
  add_cache(model, filled, chunk, need);
  add_source(model, filled, chunk, need);
  need.step_tokens = std::min(chunk, std::max({context, filled.source_tokens, filled.cache.n_sequences}));
  const Scratch scratch(model, {filled.cache.n_sequences, std::max(context, chunk)}, need.step_tokens,
                        shape.n_threads);
  need.scratch = scratch.used_bytes(model, scratch_use(model, filled, need.step_tokens)) +
                 position_bytes(model, need.step_tokens);
  return need;
}

}  // namespace quern::model
