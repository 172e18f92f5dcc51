// Tokens -> logits, for prefill and decode alike: embedding, layers, final norm, head.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/thread_pool.hpp"
#include "model/kv_cache.hpp"
#include "model/model.hpp"

namespace quern::model {

enum class Want { none, last, all };  // positions whose logits (or hidden states) are computed

// Consecutive new tokens of one sequence, from position cache.length(sequence) on.
struct Slice {
  std::size_t sequence = 0;
  std::span<const std::int32_t> ids;
  Want want = Want::last;
};

// Called with activations [tokens, width] by name ("decoder.3.0.norm_in", "logits"): debugging
// only.
using Tap = std::function<void(std::string_view name, const float* rows, std::size_t n_tokens,
                               std::size_t width, std::size_t stride)>;

// Owns the scratch memory of one stream of work; sized once, no allocation in forward().
class Runner {
 public:
  // max_chunk: most tokens of one forward() (the prefill chunk, -ub). total_length: the declared
  // length of the request, which decides length-dependent RoPE tables (0: max_positions).
  Runner(const Model& model, KvCache& cache, base::ThreadPool& pool, std::size_t max_chunk,
         std::size_t total_length);
  ~Runner();

  // Appends the slices to the cache (sum of ids <= max_chunk). Ids must be in [0, vocab_size).
  void forward(std::span<const Slice> slices);

  // Of the last forward(), in slice order: [n_logits, vocab_size] and their stride.
  std::size_t n_logits() const;
  const float* logits(std::size_t row) const;
  const float* hidden(std::size_t row) const;  // after the final norm, [d_model]

  std::size_t scratch_bytes() const;
  void set_tap(Tap tap);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::model
