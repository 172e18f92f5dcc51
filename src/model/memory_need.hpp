// What a run touches of the memory that KvCache and Runner reserve, before anything runs: the same caches and
// buffers are made for the tokens that will be in flight (their pages cost nothing until they are written) and
// counted. Not here: weights, and what the rest of the process holds (plan/memory.hpp).
#pragma once

#include <cstdint>

#include "model/kv_cache.hpp"

namespace quern::model {

// A run that fills its context.
struct RunShape {
  CacheOptions cache;              // types, sequences, max_tokens: all of them are filled
  std::size_t prefill_chunk = 512;
  std::size_t source_tokens = 0;   // an encoder's input
  std::size_t n_outputs = 1;       // most rows of logits that one step is asked for
  std::size_t n_threads = 1;
  bool deterministic = false;
  // Sequences are beams of one prompt: they share its blocks and have own_tokens of their own each.
  bool beams = false;
  std::size_t own_tokens = 0;
};

struct MemoryNeed {
  CacheBytes cache{};                  // held at the end
  std::uint64_t cache_touched = 0;     // blocks ever in use; windows take some more than they hold
  CacheBytes source{};                 // K and V of an encoder's output
  std::uint64_t encoder_touched = 0;   // K and V within an encoder
  std::uint64_t scratch = 0;           // of the steps
  std::size_t step_tokens = 0;         // of the longest step

  std::uint64_t cache_total() const {
    return cache_touched + cache.metadata + source.payload + source.scales + source.rounding +
           source.metadata;
  }
  std::uint64_t total() const { return cache_total() + encoder_touched + scratch; }
};

// Of model, shapes are read alone: its tensors may have no bytes (plan/shape_model.hpp).
MemoryNeed memory_need(const Model& model, const RunShape& shape);

}  // namespace quern::model
