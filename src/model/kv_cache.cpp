#include "model/kv_cache.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "model/kv_cache_state.hpp"

namespace quern::model {

using kernels::kBlockTokens;

namespace {

// What int4 keys cannot be.
void check_type(const CacheLayerSpec& spec, const CacheOptions& options) {
  if (options.k_type != kernels::CacheType::int4) return;
  if (spec.d_rope != 0)
    base::reject("KV cache", "latent attention keeps one row for all heads, which has no int4 form", "int4",
                 "int8, fp8_e4m3, fp8_e5m2, f16, bf16 or f32 (-ctk)");
  if (spec.d_k > kernels::kMaxRotated)
    base::reject("KV cache", "heads are too wide for int4 keys", base::cat(spec.d_k),
                 base::cat("at most ", kernels::kMaxRotated, ", or another type (-ctk)"));
}

}  // namespace

// A latent row and a layer without values have K's type throughout.
kernels::CacheLayout cache_layer_layout(const CacheLayerSpec& spec, const CacheOptions& options) {
  if (spec.exact)
    return kernels::make_cache_layout(kernels::CacheType::f32, kernels::CacheType::f32, spec.d_k, spec.d_v);
  check_type(spec, options);
  if (spec.d_rope != 0) return kernels::make_latent_layout(options.k_type, spec.d_v, spec.d_rope);
  const kernels::CacheType v_type = spec.d_v == 0 ? kernels::CacheType::f32 : options.v_type;
  return kernels::make_cache_layout(options.k_type, v_type, spec.d_k, spec.d_v);
}

std::uint32_t CacheLayerGroup::take() {
  std::uint32_t id = n_taken;
  if (free_blocks.empty()) {
    ++n_taken;
  } else {
    id = free_blocks.back();
    free_blocks.pop_back();
  }
  users[id] = 1;
  return id;
}

void CacheLayerGroup::give_back(std::uint32_t id) {
  if (--users[id] == 0) free_blocks.push_back(id);
}

std::size_t KvCache::State::group_of(const CacheLayerSpec& spec) {
  const std::size_t sinks = spec.window ? spec.sinks : 0;
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (groups[i].window == spec.window && groups[i].sinks == sinks && groups[i].row_block == spec.row_block &&
        groups[i].row_stride == spec.row_stride)
      return i;
  CacheLayerGroup group;
  group.window = spec.window;
  group.sinks = sinks;
  group.row_block = spec.row_block;
  group.row_stride = spec.row_stride;
  group.tables.resize(options.n_sequences);
  const std::size_t n_blocks = cache_blocks_for(options.max_tokens);
  for (CacheBlockTable& table : group.tables) table.blocks.assign(n_blocks, kNoBlock);
  group.free_blocks.reserve(n_blocks * options.n_sequences);
  group.users.assign(n_blocks * options.n_sequences, 0);
  groups.push_back(std::move(group));
  return groups.size() - 1;
}

// Takes the blocks from `from_block` on out of the table.
void KvCache::State::drop(CacheLayerGroup& group, CacheBlockTable& table, std::size_t from_block) {
  while (table.n_blocks > from_block) {
    std::uint32_t& id = table.blocks[--table.n_blocks];
    if (id != kNoBlock) group.give_back(id);
    id = kNoBlock;
  }
}

// Gives back the blocks that the query at position `length - rollback` and all later ones cannot see.
void KvCache::State::forget(CacheLayerGroup& group, CacheBlockTable& table, std::size_t length) {
  const std::size_t end = group.first_seen_block(length - std::min(length, options.rollback));
  for (std::size_t b = std::max(table.first_held, group.sink_blocks()); b < end; ++b) {
    group.give_back(table.blocks[b]);
    table.blocks[b] = kNoBlock;
  }
  table.first_held = std::max(table.first_held, end);
}

namespace {

CacheOptions with_length(const Model& model, CacheOptions options) {
  if (options.max_tokens == 0) options.max_tokens = model.contract.max_positions;
  return options;
}

}  // namespace

KvCache::KvCache(const Model& model, const CacheOptions& options)
    : KvCache(model.decoder ? std::span(model.decoder->cache_layers)
                            : std::span<const CacheLayerSpec>(),
              with_length(model, options)) {}

KvCache::KvCache(std::span<const CacheLayerSpec> layers, const CacheOptions& options)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.options = options;
  QUERN_ASSERT(options.n_sequences > 0 && s.options.max_tokens > 0);
  s.lengths.assign(options.n_sequences, 0);
  const std::size_t n_blocks = cache_blocks_for(s.options.max_tokens) * options.n_sequences;
  std::size_t largest = 0;
  for (const CacheLayerSpec& spec : layers) {
    CacheLayerPool pool;
    pool.layout = cache_layer_layout(spec, options);
    pool.value_bytes = kernels::cache_bytes(pool.layout.k_type, spec.k_values()) +
                       kernels::cache_bytes(pool.layout.v_type, spec.v_values());
    pool.n_kv_heads = spec.n_kv_heads;
    pool.group = s.group_of(spec);
    pool.n_ids = n_blocks;
    pool.memory = LazyMemory(n_blocks * spec.n_kv_heads * pool.layout.block_bytes);
    s.groups[pool.group].block_bytes += s.block_bytes(pool);
    largest = std::max(largest, pool.layout.block_bytes);
    s.layers.push_back(std::move(pool));
  }
  s.zeros.assign(largest + 64, std::byte{0});
  const auto address = reinterpret_cast<std::uintptr_t>(s.zeros.data());
  s.zero_block = s.zeros.data() + (64 - address % 64) % 64;
}

KvCache::~KvCache() = default;

std::size_t KvCache::length(std::size_t sequence) const {
  return state_->lengths[sequence];
}

void KvCache::reserve(std::size_t sequence, std::size_t n) {
  State& s = *state_;
  QUERN_ASSERT(sequence < s.lengths.size());
  const std::size_t length = s.lengths[sequence];
  if (n > s.options.max_tokens - length)
    base::environment_error("KV cache", base::cat("the context is full (", length, " + ", n,
                                                  " tokens, room for ", s.options.max_tokens, ")"));
  for (CacheLayerGroup& group : s.groups) {
    CacheBlockTable& table = group.tables[sequence];
    if (n > 0 && s.shares_last_block(group, sequence))
      s.own_last_block(static_cast<std::size_t>(&group - s.groups.data()), sequence);
    for (; table.n_blocks < cache_blocks_for(group.rows(length + n)); ++table.n_blocks)
      table.blocks[table.n_blocks] = group.take();
  }
}

void KvCache::commit(std::size_t sequence, std::size_t n) {
  State& s = *state_;
  s.lengths[sequence] += n;
  for (CacheLayerGroup& group : s.groups) {
    QUERN_ASSERT(group.tables[sequence].n_blocks >= cache_blocks_for(group.rows(s.lengths[sequence])));
    s.forget(group, group.tables[sequence], s.lengths[sequence]);
  }
}

bool KvCache::truncate(std::size_t sequence, std::size_t length) {
  State& s = *state_;
  QUERN_ASSERT(length <= s.lengths[sequence]);
  if (!reaches(sequence, length)) return false;
  for (CacheLayerGroup& group : s.groups) {
    CacheBlockTable& table = group.tables[sequence];
    s.drop(group, table, cache_blocks_for(group.rows(length)));
    if (length == 0) table.first_held = 0;
  }
  s.lengths[sequence] = length;
  return true;
}

void KvCache::clear(std::size_t sequence) {
  truncate(sequence, 0);
}

const kernels::CacheLayout& KvCache::layout(std::size_t cache_layer) const {
  return state_->layers[cache_layer].layout;
}

std::byte* KvCache::block(std::size_t cache_layer, std::size_t sequence, std::size_t kv_head,
                          std::size_t position) {
  const CacheLayerPool& layer = state_->layers[cache_layer];
  const CacheBlockTable& table = state_->groups[layer.group].tables[sequence];
  const std::uint32_t id = table.blocks[position / kBlockTokens];
  if (id == kNoBlock) return state_->zero_block;
  return layer.block(id, kv_head);
}

CacheBytes KvCache::bytes() const {
  const State& s = *state_;
  CacheBytes total{};
  for (const CacheLayerPool& layer : s.layers) {
    const CacheLayerGroup& group = s.groups[layer.group];
    const kernels::CacheLayout& layout = layer.layout;
    const std::size_t scale_bytes = kernels::cache_scale_bytes(layout.k_type, layout.d_k) +
                                    kernels::cache_scale_bytes(layout.v_type, layout.d_v);
    std::vector<bool> counted(group.n_taken, false);  // a block that sequences share counts once
    for (std::size_t sequence = 0; sequence < s.lengths.size(); ++sequence) {
      const CacheBlockTable& table = group.tables[sequence];
      std::size_t blocks = 0, unused = 0;
      for (std::size_t b = 0; b < table.n_blocks; ++b) {
        const std::uint32_t id = table.blocks[b];
        if (id == kNoBlock || counted[id]) continue;
        counted[id] = true;
        ++blocks;
        // Slots behind the last token; of a block reserved for a longer chunk, all of them.
        const std::size_t end = (b + 1) * kBlockTokens;
        unused += std::min(kBlockTokens, end - std::min(end, group.rows(s.lengths[sequence])));
      }
      const std::size_t rows = blocks * kBlockTokens - unused;
      const std::size_t payload = rows * layer.value_bytes, scales = rows * layer.n_kv_heads * scale_bytes;
      total.payload += payload;
      total.scales += scales;
      total.rounding += blocks * layer.n_kv_heads * layout.block_bytes - payload - scales;
    }
  }
  for (const CacheLayerGroup& group : s.groups)
    total.metadata +=
        group.tables.size() * cache_blocks_for(s.options.max_tokens) * sizeof(std::uint32_t);
  return total;
}

std::uint64_t KvCache::touched_bytes() const {
  std::uint64_t total = 0;
  for (const CacheLayerPool& layer : state_->layers)
    total += std::uint64_t{state_->groups[layer.group].n_taken} * state_->block_bytes(layer);
  return total;
}

const CacheOptions& KvCache::options() const {
  return state_->options;
}

}  // namespace quern::model
