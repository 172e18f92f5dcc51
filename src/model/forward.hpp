// Tokens -> logits, for prefill and decode alike: embedding, layers, final norm, head. Decoders append to
// the caller's cache; encoders see whole sequences and keep nothing; an encoder_decoder encodes first.
// Sequences of different length are packed into one call without padding and do not see each other: that is
// how ragged batches and several documents of one text run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/thread_pool.hpp"
#include "model/kv_cache.hpp"
#include "model/model.hpp"

namespace quern::model {

enum class Want { none, last, all };  // positions whose logits (or hidden states) are computed

// Consecutive new tokens of one sequence, from position cache.length(sequence) on (an encoder: the whole
// sequence, from position 0).
struct Slice {
  std::size_t sequence = 0;
  std::span<const std::int32_t> ids;
  Want want = Want::last;
  std::span<const std::int32_t> token_types = {};  // one per id; empty: all 0
  // Mask kind prefix: positions below it see each other. All of them come in one forward().
  std::size_t prefix_length = 0;
  std::optional<std::size_t> source = {};  // the encode()d sequence it reads; none: `sequence`
  std::size_t total_length = 0;  // declared length of its sequence; 0: the Runner's
};
// The input errors that a step throws for ids at positions from `first` on (ids, token types, positions, prefix),
// for callers that pack slices of several users. stack: the decoder, of encode() the encoder.
void check_slice(const Stack& stack, const Slice& slice, std::size_t first);

// What a request needs to run in one step: an encoder's whole input, and a prefix.
struct RequestShape {
  std::size_t n_tokens = 0, n_encoder_tokens = 0, prefix_length = 0;
};
// The smallest max_chunk >= `wanted`, but no more than the request has, that can run it.
std::size_t chunk_for(const Model& model, const RequestShape& shape, std::size_t wanted);

// Called with activations [tokens, width] by name ("decoder.3.0.norm_in", "logits"): debugging
// only.
using Tap = std::function<void(std::string_view name, const float* rows, std::size_t n_tokens,
                               std::size_t width, std::size_t stride)>;

// What a step is at, in order, for benchmarks. Latent and sparse attention and mixtures of experts are `other_op` as a
// whole, but for the matrices of a shared expert.
enum class Part {
  embedding,
  layer,         // a layer begins; its parts follow
  qkv,           // what the branch before left, norm_in, and the projections of attention
  place,         // positions; keys and values into the cache
  attend,
  o,
  gate_up,       // as qkv, of a feed-forward branch
  down,          // with the activation
  other_op,
  final_norm,    // with what the last branch left
  head,
  end
};
inline constexpr std::size_t kParts = static_cast<std::size_t>(Part::end);
// Called as each part begins, on the thread that called forward(). encode() tells nothing: its layers are not those
// that the steps behind it walk.
using PartWatch = std::function<void(Part)>;

// Owns the scratch memory of one stream of work; sized once, no allocation in forward().
class Runner {
 public:
  // max_chunk: most tokens of one forward() or encode() (the prefill chunk, -ub). total_length: the
  // declared length of the request, which decides length-dependent RoPE tables (0: max_positions). A model
  // of kind encoder does not touch `cache`.
  Runner(const Model& model, KvCache& cache, base::ThreadPool& pool, std::size_t max_chunk,
         std::size_t total_length);
  ~Runner();

  // encoder_decoder: runs the encoder over whole sequences (sum of ids <= max_chunk) and keeps what the
  // decoder's cross-attention reads, until the sequence is encoded again.
  void encode(std::span<const Slice> slices);
  // Of the last encode(): the encoder's output after its final norm, [d_model], rows in slice order.
  std::size_t n_encoded() const;
  const float* encoded(std::size_t row) const;

  // Appends the slices to the cache (sum of ids <= max_chunk). Ids must be in [0, vocab_size). False: it
  // was stopped (set_stop), the cache holds nothing of them and there are no outputs.
  bool forward(std::span<const Slice> slices);

  // Of the last forward(), in slice order: hidden states after the final norm, [d_model], of the wanted
  // positions, and their logits. A head with a pool has one row of logits per slice instead (want not none),
  // and then hidden() has every position of that slice.
  std::size_t n_hidden() const;
  const float* hidden(std::size_t row) const;
  std::size_t n_logits() const;
  std::size_t n_outputs() const;  // width of a row of logits: vocab_size, or the number of labels
  const float* logits(std::size_t row) const;
  // One vector for the hidden rows [first, first + n) of a sequence: pooled, then through the layers of the
  // contract's pooling, [contract::vector_width].
  void pool(contract::Pool mode, std::size_t first, std::size_t n, float* out) const;

  // Of the cross-attention (null without): its bytes grow with encode().
  const KvCache* source_cache() const;
  std::size_t scratch_bytes() const;
  void set_logits(bool computed);  // false: forward() ends with the hidden states (true at first)
  void set_tap(Tap tap);
  void set_part_watch(PartWatch watch);
  // Asked between the layers of a step of several tokens, so that a long one ends soon after a signal.
  void set_stop(std::function<bool()> stop_requested);
  // Another declared length, for tokens from now on: what the cache holds was computed with the old one.
  void set_total_length(std::size_t total_length);
  // Bits that do not depend on chunks, for models that trade them for speed (latent attention).
  void set_deterministic(bool deterministic);
  // Rows each expert got since the Runner was made: per layer with experts, per expert.
  const std::vector<std::vector<std::uint64_t>>& expert_loads() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::model
