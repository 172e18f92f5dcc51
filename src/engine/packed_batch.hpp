// Whole sequences of different length through a model, several in one step, packed without padding:
// what embedding, classification and filling stand on. The bits of a sequence do not depend on its
// neighbours. An encoder_decoder gets the text on both sides, on the decoder's shifted by one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/thread_pool.hpp"
#include "model/forward.hpp"

namespace quern::engine {

struct PackedSequence {
  std::span<const std::int32_t> ids, types;  // types: one per id, or none
};

// Results of sequence `index` in the runner, valid during the call: hidden rows [first_hidden,
// first_hidden + its tokens), logits from first_logits on (one row per token; of a head with a pool
// one row).
struct PackedResult {
  std::size_t index;
  const model::Runner& runner;
  std::size_t first_hidden, first_logits;
};

struct PackOptions {
  std::size_t step_tokens = 512;  // most tokens of one step; a longer sequence is a step of its own
  bool logits = true;             // false: hidden states only
  std::function<bool()> stop_requested = {};
};

// Calls on_result once for every sequence, in their order; false when it was asked to stop. Input
// errors of a sequence (no tokens, too long, ids out of range) come before any of its step's
// results.
bool run_packed(const model::Model& model, base::ThreadPool& pool,
                std::span<const PackedSequence> sequences, const PackOptions& options,
                const std::function<void(const PackedResult&)>& on_result);

}  // namespace quern::engine
