// The key-value cache: blocks of 32 tokens per layer and KV head, paged, for several sequences.
// Layout inside a block: kernels/attention_types.hpp. Layers with a window give blocks back that no
// position can see any more (bounded memory), except those of the sink tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kernels/attention_types.hpp"
#include "model/model.hpp"

namespace quern::model {

struct CacheOptions {
  kernels::CacheType k_type = kernels::CacheType::int8;
  kernels::CacheType v_type = kernels::CacheType::int8;
  std::size_t n_sequences = 1;
  std::size_t max_tokens = 0;  // per sequence; pages are touched as they fill
  // Layers with a window keep the blocks of that many more tokens, so that truncate() by as many finds
  // them (an answer taken back); more memory, the same bits.
  std::size_t rollback = 0;
};

// How the blocks of a layer lie in memory under these types.
kernels::CacheLayout cache_layer_layout(const CacheLayerSpec& spec, const CacheOptions& options);

struct CacheBytes {  // measured against the formula by `verify`
  std::uint64_t
      payload;  // codes of the tokens held: sum over layers of S * n_kv_heads * (d_k + d_v) * b
  std::uint64_t scales;
  std::uint64_t rounding;  // unused slots of started blocks, padding
  std::uint64_t metadata;  // block tables
};

class KvCache {
 public:
  KvCache(std::span<const CacheLayerSpec> layers, const CacheOptions& options);
  // Of the model's decoder (without one: an empty cache); max_tokens 0: the model's max_positions.
  KvCache(const Model& model, const CacheOptions& options);
  ~KvCache();

  std::size_t length(std::size_t sequence) const;  // tokens held
  // Makes room for positions [length, length + n); environment error when max_tokens is passed.
  void reserve(std::size_t sequence, std::size_t n);
  void commit(std::size_t sequence, std::size_t n);  // the n new positions are now held
  // Rolls back to `length` tokens (any smaller value a windowed layer still holds, CacheOptions::rollback;
  // otherwise false and the caller must start anew).
  bool truncate(std::size_t sequence, std::size_t length);
  void clear(std::size_t sequence);
  // Sequence i becomes what sequence parents[i] was (one parent per sequence of the cache). Blocks
  // are shared, not copied: the cost is a table of ids per sequence. The first token a sequence
  // then appends to a started block that others share copies that block (32 tokens of each layer).
  void reorder(std::span<const std::size_t> parents);
  // True when truncate(sequence, length) would find every block that later positions see.
  bool reaches(std::size_t sequence, std::size_t length) const;
  // The empty sequence `to` begins as the first `length` tokens of `from`, with its blocks, as after
  // reorder(). False, and `to` stays empty, where reaches(from, length) is.
  bool share(std::size_t from, std::size_t to, std::size_t length);
  bool forgets() const;  // some layer has a window

  // A snapshot of one sequence (kv_cache_snapshot.cpp): layer by layer the blocks that a later position
  // can see, in order, slots behind the last token zero - the bytes depend on the tokens held alone.
  std::uint64_t snapshot_bytes(std::size_t length) const;  // of `length` <= max_tokens tokens
  using WriteBytes = std::function<void(std::span<const std::byte>)>;
  // Its first `length` tokens, which reaches() has.
  void save(std::size_t sequence, std::size_t length, const WriteBytes& write) const;
  // Replaces the sequence by `length` tokens; bytes: snapshot_bytes(length).
  void load(std::size_t sequence, std::size_t length, std::span<const std::byte> bytes);
  // Of what decides those bytes: types, widths, windows of every layer, and the layout's version.
  std::uint64_t snapshot_layout_hash() const;

  const kernels::CacheLayout& layout(std::size_t cache_layer) const;
  // Block that holds `position` for a layer and KV head.
  std::byte* block(std::size_t cache_layer, std::size_t sequence, std::size_t kv_head,
                   std::size_t position);

  CacheBytes bytes() const;
  // Blocks in use, those that sequences share counted once; and what reserve(sequence, n) adds to them.
  std::uint64_t block_bytes() const;
  std::uint64_t reserve_bytes(std::size_t sequence, std::size_t n) const;
  std::uint64_t touched_bytes() const;  // of all blocks that were ever in use: memory stays touched
  const CacheOptions& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::model
