// Many sequences through one model at once (continuous batching): every step is one forward() over the next
// token of each sequence that decodes and over chunks of prompts that are still read, so that weights are read
// once for all of them and a long prompt does not hold the others up. What prompts have in common at their
// beginning is computed once (shared_beginnings.hpp). The tokens and logits of a sequence are those that a
// deterministic Session with its declared length gives it alone, bit for bit, whatever runs beside it. Not here:
// files and requests of users (batch/), whole sequences without an answer (packed_batch.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.hpp"
#include "engine/session.hpp"
#include "sampling/sampler.hpp"

namespace quern::engine {

struct SchedulerOptions {
  model::CacheOptions cache;        // types; max_tokens: of one sequence (the context)
  std::size_t n_parallel = 8;       // most sequences that run at once (-np)
  std::size_t step_tokens = 512;    // most tokens of one step (-ub), those that decode first; n_parallel at least
  std::size_t source_length = 0;    // encoder-decoder: most ids of one source
  std::size_t prefix_sequences = 4; // prompts' beginnings that are kept when nobody runs them, each up to a context
  bool share_prefixes = true;
};

// How one sequence ended. An error of its own (non-finite logits, no token left by the constraint) ends it
// alone: its message is in `error`, and its neighbours' bits are as ever.
struct SequenceOutcome {
  FinishReason reason = FinishReason::interrupted;
  std::string error;               // empty: none
  std::size_t prompt_tokens = 0;   // of these reused_tokens came from a shared beginning
  std::size_t reused_tokens = 0;
  std::size_t answer_tokens = 0;   // a stop id not counted
  double prefill_seconds = 0, decode_seconds = 0, queue_seconds = 0;  // wall, as this sequence saw it
};

struct SequenceRequest {
  std::vector<std::int32_t> prompt;   // of an encoder-decoder: the decoder's first ids
  std::vector<std::int32_t> source;   // encoder-decoder: what is encoded
  std::unique_ptr<sampling::Sampler> sampler;
  std::shared_ptr<void> keep = {};    // lives as long as the sequence: constraint and the like
  std::size_t max_new_tokens = 0;     // 0 ends at once, as `length`
  std::size_t total_length = 0;       // declared, for models whose positions follow it; 0: prompt + max_new_tokens
  std::vector<std::int32_t> stop_ids;
  // Each new token (stop ids not included) with the logits [vocab_size] it was chosen from; false ends it as `stop`.
  std::function<bool(std::int32_t id, std::span<const float> logits)> on_token = {};
  // Once, from within step() or cancel(); the sequence counts no more, and add() may be called. Callbacks run on
  // the thread of step(); after one that throws only the destructor makes sense.
  std::function<void(const SequenceOutcome&)> on_finished = {};
};

class Scheduler {
 public:
  Scheduler(const model::Model& model, base::ThreadPool& pool, const SchedulerOptions& options);
  ~Scheduler();

  // Queued until a sequence is free, in the order they were added. Input error, nothing queued, for a prompt
  // that is empty or longer than the context ("prompt has N tokens, context is M"), a source likewise, and for
  // ids and positions the model does not have.
  void add(SequenceRequest request);
  // Sequences that wait or run; `wants_more`: fewer wait than would keep the machine busy.
  std::size_t n_waiting() const;
  std::size_t n_running() const;
  bool wants_more() const;

  // One step; false: there was nothing to do. stop_requested is asked between the layers: a step that was stopped
  // leaves every sequence as it was before.
  bool step(const std::function<bool()>& stop_requested = {});
  void cancel();  // every sequence ends as interrupted

  struct Totals {
    std::size_t steps = 0, prefill_tokens = 0, reused_tokens = 0, decode_tokens = 0;
    double seconds = 0;            // in forward() and sampling
    std::size_t most_running = 0;
  };
  const Totals& totals() const;
  const model::KvCache& cache() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::engine
