// The expanded form of latent attention, for long chunks: an item is one head of one run. Its keys
// and values are made from the latents tile by tile, in blocks of its own (int8 where the cache is,
// else f32), and every query of the run attends them.
#include <algorithm>
#include <array>
#include <limits>

#include "base/round_up.hpp"
#include "model/mla.hpp"

namespace quern::model {

using kernels::kAttendQueries;
using kernels::kBlockTokens;
using kernels::kTileBlocks;
using kernels::kTileTokens;

namespace {

struct Head {
  const Run& run;
  std::size_t index;
  kernels::CacheLayout layout;  // of its own blocks
};

// Latent rows [kTileTokens, kv_rank + d_rope] of the tile from `key` on.
Rows read_latents(const Step& step, const Mla& op, const Run& run, std::size_t key,
                  std::size_t n_blocks, const ExpandedScratch& memory) {
  const std::size_t width = op.spec->kv_rank + op.spec->d_rope;
  const Rows rows{memory.latents.data(), n_blocks * kBlockTokens, width, base::round_up(width, 16)};
  for (std::size_t b = 0; b < n_blocks; ++b)
    step.model.kernels->latent_rows(step.cache.layout(op.latent.cache_layer),
                                    step.cache.block(op.latent.cache_layer, run.cache_sequence, 0,
                                                     run.first_row + key + b * kBlockTokens),
                                    rows.row(b * kBlockTokens), rows.stride, memory.kernel.data());
  return rows;
}

// K and V of one head for the tile, in blocks.
void expand_tile(const Step& step, const Mla& op, const Head& head, const Rows& latents,
                 const ExpandedScratch& memory, std::size_t thread) {
  const contract::Mla& spec = *op.spec;
  const std::size_t d_k = spec.d_nope + spec.d_rope;
  float* product = step.scratch.mla.product[thread].data();
  const Rows k{memory.k.data(), latents.n, d_k, base::round_up(d_k, 16)};
  const Rows v{memory.v.data(), latents.n, spec.d_v, base::round_up(spec.d_v, 16)};
  multiply_rows(op.k_b, head.index * spec.d_nope, spec.d_nope, latents, k, product);
  multiply_rows(op.v_b, head.index * spec.d_v, spec.d_v, latents, v, product);
  for (std::size_t t = 0; t < latents.n; ++t) {
    std::copy_n(latents.row(t) + spec.kv_rank, spec.d_rope, k.row(t) + spec.d_nope);
    step.model.kernels->store_kv(head.layout, k.row(t), v.row(t),
                                 memory.blocks.data() + t / kBlockTokens * head.layout.block_bytes,
                                 t % kBlockTokens);
  }
}

// What the queries of the run see: [begin, end) each.
void mark_visible(const contract::Mla& spec, const Run& run, const ExpandedScratch& memory) {
  for (std::size_t t = 0; t < run.n_tokens; ++t) {
    const std::size_t end = run.first_position + t + 1;
    memory.end[t] = static_cast<std::uint32_t>(end);
    memory.begin[t] = static_cast<std::uint32_t>(
        spec.mask.window && end > *spec.mask.window ? end - *spec.mask.window : 0);
  }
}

// The head's queries as the kernels take them.
void prepare_queries(const Step& step, const Rows& q, const Head& head, const ExpandedScratch& memory) {
  const std::size_t d_k = head.layout.d_k, stride = kernels::query_floats(d_k);
  for (std::size_t t = 0; t < head.run.n_tokens; ++t)
    step.model.kernels->store_query(head.layout, q.row(head.run.first_token + t) + head.index * d_k,
                                    memory.q.data() + t * stride);
}

kernels::AttendArgs attend_args(const Mla& op, const Head& head, const ExpandedScratch& memory) {
  const contract::Mla& spec = *op.spec;
  kernels::AttendArgs args{};
  args.layout = &head.layout;
  args.q = memory.q.data();
  args.q_stride = kernels::query_floats(head.layout.d_k);
  args.begin = memory.begin.data();
  args.end = memory.end.data();
  args.sinks = spec.mask.window ? static_cast<std::uint32_t>(spec.mask.sinks) : 0;
  args.scale = static_cast<float>(spec.scale);
  args.n_queries = head.run.n_tokens;
  args.state = {memory.max.data(), memory.sum.data(), memory.o.data(),
                base::round_up(spec.d_v, 16)};
  args.scratch = memory.kernel.data();
  return args;
}

void attend_head(const Step& step, const Mla& op, const Rows& q, const Selection* selection,
                 const Head& head, const Rows& attended, std::size_t thread) {
  const ExpandedScratch& memory = step.scratch.mla.expanded[thread];
  const Run& run = head.run;
  mark_visible(*op.spec, run, memory);
  prepare_queries(step, q, head, memory);
  kernels::AttendArgs args = attend_args(op, head, memory);
  std::fill_n(memory.max.data(), run.n_tokens, -std::numeric_limits<float>::infinity());
  std::fill_n(memory.sum.data(), run.n_tokens, 0.0F);
  std::fill_n(memory.o.data(), run.n_tokens * args.state.o_stride, 0.0F);
  if (selection != nullptr) {
    for (std::size_t t = 0; t < run.n_tokens; ++t)
      memory.selected[t] = selection->bits + (run.first_token + t) * selection->words;
    args.selected = memory.selected.data();
  }
  std::array<const std::byte*, kTileBlocks> blocks;
  for (std::size_t b = 0; b < kTileBlocks; ++b)
    blocks[b] = memory.blocks.data() + b * head.layout.block_bytes;
  args.blocks = blocks.data();
  const std::size_t n_keys = run.first_position + run.n_tokens;
  for (std::size_t key = 0; key < n_keys; key += kTileTokens) {
    if (key + kTileTokens <= memory.begin[0] && key >= args.sinks) continue;
    args.first_key = key;
    args.n_blocks = (std::min(n_keys - key, kTileTokens) + kBlockTokens - 1) / kBlockTokens;
    expand_tile(step, op, head, read_latents(step, op, run, key, args.n_blocks, memory), memory,
                thread);
    step.model.kernels->attend(args);
  }
  step.model.kernels->finish_attention(args.state, run.n_tokens, op.spec->d_v,
                                       attended.row(run.first_token) + head.index * op.spec->d_v,
                                       attended.stride, nullptr);
}

}  // namespace

void attend_expanded(Step& step, const Mla& op, const Rows& q, const Selection* selection,
                     const Rows& attended) {
  const std::size_t n_heads = op.spec->n_heads;
  // int8 products are several times as fast, and what is expanded has been rounded to codes once already.
  const bool codes = step.cache.layout(op.latent.cache_layer).k_type == kernels::CacheType::int8;
  const kernels::CacheType type = codes ? kernels::CacheType::int8 : kernels::CacheType::f32;
  const kernels::CacheLayout layout =
      kernels::make_cache_layout(type, type, op.spec->d_nope + op.spec->d_rope, op.spec->d_v);
  auto work = [&](std::size_t begin, std::size_t end, std::size_t thread) {
    for (std::size_t item = begin; item < end; ++item)
      attend_head(step, op, q, selection, {step.runs[item / n_heads], item % n_heads, layout},
                  attended, thread);
  };
  step.pool.parallel_for(step.runs.size() * n_heads, 1, work);
}

}  // namespace quern::model
