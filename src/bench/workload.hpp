// A model ready to run cases of one shape: cache, runner, pseudo-random ids. One run() is one repetition. Input is
// token ids; tokenizing and sampling are not measured.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "bench/case.hpp"
#include "model/forward.hpp"

namespace quern::bench {

// The measured part of one repetition.
struct Timing {
  std::uint64_t total_ns = 0, prompt_ns = 0, gen_ns = 0;
  std::vector<std::uint64_t> step_ns;  // of each decode step (of all sequences together)
  std::uint64_t cache_bytes = 0;       // codes and scales held at the end, all sequences
};

// What has to be the same for cases to share one Workload.
struct Shape {
  std::size_t model, n_threads, n_batch, n_ubatch, n_depth, n_sequences;
  std::string k_type, v_type;
  static Shape of(const Case& one);
  friend bool operator==(const Shape&, const Shape&) = default;
};

class Workload {
 public:
  // cases: all that will run here, of one shape. Input errors when the model has too few positions for one of
  // them, when it cannot generate, or has no depth.
  Workload(const model::Model& model, base::ThreadPool& pool, std::span<const Case> cases,
           const model::CacheOptions& types, bool deterministic = false);
  ~Workload();

  // False: stopped. The depth is filled before the clock starts, and kept from run to run where the cache allows.
  bool run(const Case& one, Timing& timing);
  void set_stop(std::function<bool()> stop_requested);
  std::size_t n_source() const;  // ids of the encoder that an answer reads; 0 without

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The longest prompt the model takes, for the default of -p: 512, or its positions.
std::size_t default_prompt(const model::Model& model);

}  // namespace quern::bench
