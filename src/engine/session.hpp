// One conversation with a model: prefill of what is new, then decode token by token, or a search
// with beams. An encoder-decoder encodes its source first; the ids then are the decoder's input.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "engine/beam_search.hpp"
#include "sampling/sampler.hpp"
#include "model/forward.hpp"

namespace quern::engine {

struct SessionOptions {
  model::CacheOptions cache;
  std::size_t prefill_chunk = 512;  // -ub
  std::size_t total_length = 0;     // declared length of the request (0: the context)
  bool deterministic = false;       // model::Runner::set_deterministic()
  std::size_t source_length = 0;    // most ids of one encode()
  std::size_t n_beams = 1;          // of the widest search(); each has a sequence of the cache
};

enum class FinishReason { stop, length, interrupted };

struct PhaseTimes {  // seconds and counts of one encode() and generate() or search()
  double encode_seconds = 0;
  std::size_t encode_tokens = 0;
  double prefill_seconds = 0, decode_seconds = 0, sampling_seconds = 0;
  std::size_t prefill_tokens = 0, decode_tokens = 0;
  std::vector<double> token_seconds;  // per decoded token (of a search: per step of all beams)
};

struct GenerateOptions {
  std::size_t max_new_tokens = 0;
  std::vector<std::int32_t> stop_ids;
  bool ignore_eos = false;
  std::function<bool()> stop_requested =
      {};  // asked between prefill chunks; true ends as interrupted
};

class Session {
 public:
  Session(const model::Model& model, base::ThreadPool& pool, const SessionOptions& options);
  ~Session();

  // Input error "prompt has N tokens, context is M" before any work. Keeps the longest common
  // prefix of the cache with `ids`, prefills the rest, and samples until a stop id, the limit, or
  // on_token returns false. on_token gets each new id (stop ids not included).
  FinishReason generate(std::span<const std::int32_t> ids, sampling::Sampler& sampler,
                        const GenerateOptions& options,
                        const std::function<bool(std::int32_t)>& on_token);

  // Encoder-decoder: what the following generate() or search() reads. Input error, before any work,
  // when the source is longer than SessionOptions::source_length or than the encoder's positions.
  void encode(std::span<const std::int32_t> source);

  struct SearchResult {
    std::vector<Hypothesis> hypotheses;  // best first
    FinishReason reason;                 // of the best one
  };
  // Beam search from `ids`; options.n_beams at most SessionOptions::n_beams. Nothing is kept for
  // the next call.
  SearchResult search(std::span<const std::int32_t> ids, sampling::TokenRules& rules,
                      const BeamOptions& options);

  // Teacher forcing: logits of every position through on_logits(position, logits [vocab_size]).
  void evaluate(std::span<const std::int32_t> ids,
                const std::function<void(std::size_t, const float*)>& on_logits);

  const std::vector<std::int32_t>& tokens() const;  // held by the cache
  const PhaseTimes& times() const;                  // of the last generate()
  model::KvCache& cache();
  model::Runner& runner();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::engine
