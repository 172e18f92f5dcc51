// The inside of KvCache, shared by kv_cache*.cpp; nobody else includes it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/kv_cache.hpp"
#include "model/lazy_array.hpp"

namespace quern::model {

inline constexpr std::uint32_t kNoBlock = UINT32_MAX;

inline std::size_t cache_blocks_for(std::size_t tokens) {
  return (tokens + kernels::kBlockTokens - 1) / kernels::kBlockTokens;
}

// Block b of a sequence lies at entry b; entries of blocks given back are kNoBlock.
struct CacheBlockTable {
  std::vector<std::uint32_t> blocks;
  std::size_t n_blocks = 0;    // entries in use
  std::size_t first_held = 0;  // blocks [n_sink_blocks, first_held) were given back
};

// Layers that forget the same positions share block tables: one id names a block in each of them.
struct CacheLayerGroup {
  std::optional<std::size_t> window;
  std::size_t sinks = 0;
  std::size_t row_block = 1, row_stride = 1;
  std::vector<CacheBlockTable> tables;     // per sequence
  std::vector<std::uint32_t> free_blocks;  // given back, taken again first
  std::uint32_t n_taken = 0;               // ids ever taken: the pool's high-water mark
  std::vector<std::uint32_t> users;        // per id: tables that hold it
  std::size_t block_bytes = 0;             // of one id, in all layers

  std::uint32_t take();
  void give_back(std::uint32_t id);

  std::size_t sink_blocks() const { return cache_blocks_for(sinks); }
  std::size_t rows(std::size_t n_tokens) const { return rows_of(n_tokens, row_block, row_stride); }
  // Blocks of a sequence of `n_tokens` that the query at position n_tokens, or a later one, can see:
  // those before sink_blocks() and those from here on.
  std::size_t first_seen_block(std::size_t n_tokens) const {
    return window && n_tokens + 1 > *window ? (n_tokens + 1 - *window) / kernels::kBlockTokens : 0;
  }
};

// The blocks of one layer: [kv_head, id, block_bytes], so that a head's tile of keys is one stretch of memory where its
// blocks were taken in order. From memory a Zen 5 core attends such at 25 GB/s, and blocks 17 KB apart at 21.
struct CacheLayerPool {
  kernels::CacheLayout layout;
  std::size_t n_kv_heads = 0, group = 0, n_ids = 0;
  std::size_t value_bytes = 0;  // of a token: all KV heads
  LazyMemory memory;

  std::byte* block(std::uint32_t id, std::size_t kv_head) const {
    return memory.data() + (kv_head * n_ids + id) * layout.block_bytes;
  }
};

struct KvCache::State {
  CacheOptions options;
  std::vector<CacheLayerGroup> groups;
  std::vector<CacheLayerPool> layers;
  std::vector<std::size_t> lengths;  // per sequence
  std::vector<std::byte> zeros;      // stands in for blocks that no query can see
  std::byte* zero_block = nullptr;

  std::size_t block_bytes(const CacheLayerPool& layer) const {  // of all KV heads
    return layer.n_kv_heads * layer.layout.block_bytes;
  }
  std::size_t group_of(const CacheLayerSpec& spec);
  bool shares_last_block(const CacheLayerGroup& group, std::size_t sequence) const;
  void drop(CacheLayerGroup& group, CacheBlockTable& table, std::size_t from_block);
  void forget(CacheLayerGroup& group, CacheBlockTable& table, std::size_t length);
  void own_last_block(std::size_t group, std::size_t sequence);
};

}  // namespace quern::model
