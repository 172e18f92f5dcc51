// Sequences that have their beginning in common hold it once: blocks with several users, copied by the first
// of them that appends to one.
#include <cstring>

#include "base/error.hpp"
#include "model/kv_cache_state.hpp"

namespace quern::model {

using kernels::kBlockTokens;

// True: the next token goes into a started block that other sequences see too.
bool KvCache::State::shares_last_block(const CacheLayerGroup& group, std::size_t sequence) const {
  const std::size_t n_rows = group.rows(lengths[sequence]);
  if (n_rows % kBlockTokens == 0) return false;
  const std::uint32_t id = group.tables[sequence].blocks[n_rows / kBlockTokens];
  return id != kNoBlock && group.users[id] > 1;
}

void KvCache::State::own_last_block(std::size_t group_index, std::size_t sequence) {
  CacheLayerGroup& group = groups[group_index];
  std::uint32_t& entry = group.tables[sequence].blocks[group.rows(lengths[sequence]) / kBlockTokens];
  const std::uint32_t shared = entry;
  entry = group.take();
  group.give_back(shared);
  for (CacheLayerPool& layer : layers) {
    if (layer.group != group_index) continue;
    for (std::size_t head = 0; head < layer.n_kv_heads; ++head)
      std::memcpy(layer.block(entry, head), layer.block(shared, head), layer.layout.block_bytes);
  }
}

void KvCache::reorder(std::span<const std::size_t> parents) {
  State& s = *state_;
  QUERN_ASSERT(parents.size() == s.lengths.size());
  for (CacheLayerGroup& group : s.groups) {
    std::vector<CacheBlockTable> next;
    next.reserve(parents.size());
    for (const std::size_t parent : parents) next.push_back(group.tables[parent]);
    for (const CacheBlockTable& table : next)
      for (std::size_t b = 0; b < table.n_blocks; ++b)
        if (table.blocks[b] != kNoBlock) ++group.users[table.blocks[b]];
    for (CacheBlockTable& table : group.tables) s.drop(group, table, 0);
    group.tables = std::move(next);
  }
  std::vector<std::size_t> lengths;
  for (const std::size_t parent : parents) lengths.push_back(s.lengths[parent]);
  s.lengths = std::move(lengths);
}

bool KvCache::reaches(std::size_t sequence, std::size_t length) const {
  const State& s = *state_;
  QUERN_ASSERT(length <= s.lengths[sequence]);
  // The next query sits at position `length`; every block it can see must still be held.
  for (const CacheLayerGroup& group : s.groups) {
    const std::size_t first_held = group.tables[sequence].first_held;
    if (first_held <= group.sink_blocks() || length == 0) continue;
    if (group.first_seen_block(length) < first_held) return false;
  }
  return true;
}

bool KvCache::share(std::size_t from, std::size_t to, std::size_t length) {
  State& s = *state_;
  QUERN_ASSERT(from != to && s.lengths[to] == 0);
  if (!reaches(from, length)) return false;
  clear(to);  // of what an abandoned reserve() took
  for (CacheLayerGroup& group : s.groups) {
    const CacheBlockTable& source = group.tables[from];
    CacheBlockTable& table = group.tables[to];
    table.n_blocks = cache_blocks_for(group.rows(length));
    table.first_held = source.first_held;
    for (std::size_t b = 0; b < table.n_blocks; ++b) {
      table.blocks[b] = source.blocks[b];
      if (table.blocks[b] != kNoBlock) ++group.users[table.blocks[b]];
    }
    s.forget(group, table, length);
  }
  s.lengths[to] = length;
  return true;
}

bool KvCache::forgets() const {
  for (const CacheLayerGroup& group : state_->groups)
    if (group.window) return true;
  return false;
}

std::uint64_t KvCache::block_bytes() const {
  std::uint64_t bytes = 0;
  for (const CacheLayerGroup& group : state_->groups)
    bytes += (group.n_taken - group.free_blocks.size()) * group.block_bytes;
  return bytes;
}

std::uint64_t KvCache::reserve_bytes(std::size_t sequence, std::size_t n) const {
  const State& s = *state_;
  std::uint64_t bytes = 0;
  for (const CacheLayerGroup& group : s.groups) {
    const std::size_t held = group.tables[sequence].n_blocks;
    const std::size_t needed = cache_blocks_for(group.rows(s.lengths[sequence] + n));
    std::size_t n_blocks = needed > held ? needed - held : 0;
    if (n > 0 && s.shares_last_block(group, sequence)) ++n_blocks;
    bytes += n_blocks * group.block_bytes;
  }
  return bytes;
}

}  // namespace quern::model
