// Saving and loading one sequence of the cache. Which blocks a length needs follows from the length
// alone (first_seen_block), so that a reader knows every size before it touches a byte.
#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "kernels/cache_slots.hpp"
#include "model/kv_cache_state.hpp"

namespace quern::model {

using kernels::kBlockTokens;

namespace {

// visit(block) for every block of a group that `length` tokens need, in order.
template <class F>
void for_held_blocks(const CacheLayerGroup& group, std::size_t length, F&& visit) {
  const std::size_t n_blocks = cache_blocks_for(group.rows(length));
  const std::size_t seen = group.first_seen_block(length), sinks = group.sink_blocks();
  for (std::size_t b = 0; b < n_blocks; ++b)
    if (b < sinks || b >= seen) visit(b);
}

}  // namespace

std::uint64_t KvCache::snapshot_bytes(std::size_t length) const {
  const State& s = *state_;
  QUERN_ASSERT(length <= s.options.max_tokens);
  std::uint64_t bytes = 0;  // at most what the pools reserved
  for (const CacheLayerPool& layer : s.layers) {
    std::uint64_t n_blocks = 0;
    for_held_blocks(s.groups[layer.group], length, [&](std::size_t) { ++n_blocks; });
    bytes += n_blocks * s.block_bytes(layer);
  }
  return bytes;
}

void KvCache::save(std::size_t sequence, std::size_t length, const WriteBytes& write) const {
  const State& s = *state_;
  QUERN_ASSERT(reaches(sequence, length));
  std::vector<std::byte> last;
  for (const CacheLayerPool& layer : s.layers) {
    const CacheLayerGroup& group = s.groups[layer.group];
    const std::size_t n_rows = group.rows(length), bytes = layer.layout.block_bytes;
    for_held_blocks(group, length, [&](std::size_t b) {
      const std::uint32_t id = group.tables[sequence].blocks[b];
      QUERN_ASSERT(id != kNoBlock);
      const std::size_t n_held = n_rows - b * kBlockTokens;
      for (std::size_t head = 0; head < layer.n_kv_heads; ++head) {
        const std::byte* block = layer.block(id, head);
        if (n_held >= kBlockTokens) {
          write({block, bytes});
          continue;
        }
        last.assign(block, block + bytes);
        kernels::clear_cache_slots(layer.layout, last.data(), n_held);
        write(last);
      }
    });
  }
}

void KvCache::load(std::size_t sequence, std::size_t length, std::span<const std::byte> bytes) {
  State& s = *state_;
  QUERN_ASSERT(bytes.size() == snapshot_bytes(length));
  clear(sequence);
  for (CacheLayerGroup& group : s.groups) {
    CacheBlockTable& table = group.tables[sequence];
    for_held_blocks(group, length, [&](std::size_t b) { table.blocks[b] = group.take(); });
    table.n_blocks = cache_blocks_for(group.rows(length));
    table.first_held = group.first_seen_block(length);
  }
  const std::byte* from = bytes.data();
  for (const CacheLayerPool& layer : s.layers) {
    const CacheLayerGroup& group = s.groups[layer.group];
    const std::size_t block_bytes = layer.layout.block_bytes;
    for_held_blocks(group, length, [&](std::size_t b) {
      for (std::size_t head = 0; head < layer.n_kv_heads; ++head, from += block_bytes)
        std::memcpy(layer.block(group.tables[sequence].blocks[b], head), from, block_bytes);
    });
  }
  s.lengths[sequence] = length;
}

std::uint64_t KvCache::snapshot_layout_hash() const {
  std::vector<std::uint64_t> words = {kernels::kCacheLayoutVersion, kBlockTokens};
  for (const CacheLayerPool& layer : state_->layers) {
    const kernels::CacheLayout& l = layer.layout;
    const CacheLayerGroup& group = state_->groups[layer.group];
    for (const std::size_t word :
         {static_cast<std::size_t>(l.k_type), static_cast<std::size_t>(l.v_type), l.d_k, l.d_v, l.d_rope,
          l.block_bytes, layer.n_kv_heads, group.window.value_or(SIZE_MAX), group.sinks, group.row_block,
          group.row_stride})
      words.push_back(word);
  }
  return base::xxh3(std::as_bytes(std::span(words)));
}

}  // namespace quern::model
