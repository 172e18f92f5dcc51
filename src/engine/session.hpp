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
#include "engine/speculator.hpp"
#include "sampling/sampler.hpp"
#include "model/forward.hpp"

namespace quern::engine {

struct SessionOptions {
  model::CacheOptions cache;
  std::size_t prefill_chunk = 512;  // -ub
  std::size_t total_length = 0;     // declared length of the request (0: the context)
  // The declared length follows the text instead of total_length: the shortest for which the model has
  // position tables of their own. A text that outgrows it is computed again (GenerateOptions::on_rebuild).
  bool follow_length = false;
  bool deterministic = false;       // model::Runner::set_deterministic()
  std::size_t source_length = 0;    // most ids of one encode()
  std::size_t n_beams = 1;          // of the widest search(); each has a sequence of the cache
  std::size_t max_draft = 0;        // most guesses that a speculator has checked in one step; 0: none
};

enum class FinishReason { stop, length, interrupted };

struct PhaseTimes {  // seconds and counts of one encode() and generate() or search()
  double encode_seconds = 0;
  std::size_t encode_tokens = 0;
  double prefill_seconds = 0, decode_seconds = 0, sampling_seconds = 0;
  std::size_t prefill_tokens = 0, decode_tokens = 0;  // computed, rebuilt ones among them
  std::size_t reused_tokens = 0;   // of the prompt, held by the cache before
  std::size_t rebuilt_tokens = 0;  // prefilled again during the answer: on_rebuild, on_full
  std::size_t decode_steps = 0;    // of decode_tokens: how often the weights were read
  std::vector<double> token_seconds;  // per decoded token (of a search: per step of all beams)
  SpeculationCounts speculation;
};

// A declared length was outgrown: position tables change and n_tokens are prefilled again.
struct LengthChange {
  std::size_t from, to;  // declared lengths
  std::size_t n_tokens;
};

struct GenerateOptions {
  std::size_t max_new_tokens = 0;
  std::vector<std::int32_t> stop_ids;
  bool ignore_eos = false;
  // Asked between prefill chunks and between the layers of one; true ends as interrupted.
  std::function<bool()> stop_requested = {};
  // Called before the first chunk of a prefill and after each: tokens done of those to do.
  std::function<void(std::size_t done, std::size_t total)> on_prefill = {};
  // Before a prompt or answer that crossed the declared length is computed again (follow_length).
  std::function<void(const LengthChange&)> on_rebuild = {};
  // The context is full: from the text so far (prompt and answer) to the ids to go on from, which must
  // leave room in the context; empty ends the answer as `length`. Unset: ends it too.
  std::function<std::vector<std::int32_t>(std::span<const std::int32_t>)> on_full = {};
  // Guesses following tokens, which are then checked together: the same tokens, sooner. Not owned; null: one
  // token a step. No more guesses at once than SessionOptions::max_draft.
  Speculator* speculator = nullptr;
};

// Input error unless the model has a decoder with a language head.
void check_generates(const model::Model& model);

class Session {
 public:
  Session(const model::Model& model, base::ThreadPool& pool, const SessionOptions& options);
  ~Session();

  // Input error "prompt has N tokens, context is M" before any work. Keeps the longest common
  // prefix of the cache with `ids`, prefills the rest, and samples until a stop id, the limit, or
  // on_token returns false. on_token gets each new id (stop ids not included). However it ends, tokens()
  // are exactly those whose keys and values the cache holds; within on_token it may hold guesses behind them.
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
  // How many of them generate(ids) would keep.
  std::size_t reusable_tokens(std::span<const std::int32_t> ids) const;
  // Within on_token: the logits [vocab_size] that its id was chosen from.
  std::span<const float> logits() const;
  const PhaseTimes& times() const;                  // of the last generate()
  const model::Model& model() const;
  std::size_t context() const;          // most tokens it can hold
  std::size_t declared_length() const;  // what length-dependent position tables are made for
  bool deterministic() const;
  bool follows_length() const;
  // Declares another length. Where that changes the model's tables (dynamic NTK, longrope) the session
  // becomes empty and the next generate() computes everything: true.
  bool declare_length(std::size_t total_length);
  void clear();  // holds nothing
  // What a snapshot held, checked by its reader: the cache bytes are KvCache::save()'s of ids.size()
  // tokens, computed under declared_length().
  void restore(std::span<const std::int32_t> ids, std::span<const std::byte> cache);
  const model::KvCache& cache() const;
  model::KvCache& cache();
  model::Runner& runner();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::engine
