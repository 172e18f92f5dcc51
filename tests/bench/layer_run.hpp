// Turns of decode through a Session, watched and not, beside measurements of the machine.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "base/thread_pool.hpp"
#include "bench/layer_clock.hpp"
#include "engine/limits.hpp"
#include "engine/session.hpp"
#include "model/forward.hpp"
#include "sampling/sampler.hpp"

namespace quern::bench {

// Tokens of an answer: the context is about as long for all of them.
inline constexpr std::size_t kAnswer = 32;
inline constexpr double kLimitSeconds = 0.1;  // of a turn's measurement of the machine

struct DecodeShape {
  std::size_t threads = 0, depth = 0;  // depth: tokens in the cache before an answer
  kernels::CacheType k_type = kernels::CacheType::int8, v_type = kernels::CacheType::int8;
};

using SteadyClock = std::chrono::steady_clock;

inline double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

inline engine::SessionOptions session_options(const DecodeShape& shape) {
  engine::SessionOptions options;
  options.cache.k_type = shape.k_type;
  options.cache.v_type = shape.v_type;
  options.cache.max_tokens = shape.depth + kAnswer + 2;
  options.cache.rollback = kAnswer + 1;
  return options;
}

struct Measured {
  LayerClock clock;
  std::vector<double> token_seconds;  // of steps that were not watched
  std::vector<double> read;           // bytes/s of every turn
};

// A turn is a measurement of the machine, an answer that nobody watches and one that is watched: a
// machine that changes does so for all three.
class DecodeTurns {
 public:
  DecodeTurns(const model::Model& model, const DecodeShape& shape)
      : model_(model),
        pool_(shape.threads),
        session_(model, pool_, session_options(shape)),
        sampler_(greedy(), model.contract.vocab_size),
        ids_(shape.depth + 1) {
    std::mt19937 random(1);
    for (std::int32_t& id : ids_)
      id = static_cast<std::int32_t>(random() % model.contract.vocab_size);
  }

  Measured run(double seconds) {
    Measured m{LayerClock(model_.decoder->layers.size()), {}, {}};
    answer();  // the prompt, and what is touched for the first time
    for (const SteadyClock::time_point start = SteadyClock::now();
         seconds_since(start) < seconds;) {
      m.read.push_back(engine::measure_read_bandwidth(pool_, kLimitSeconds));
      answer();
      const std::vector<double>& times =
          session_.times().token_seconds;  // the first finds cold caches
      m.token_seconds.insert(m.token_seconds.end(), times.begin() + 1, times.end());
      watch(&m.clock);
      answer();
      watch(nullptr);
    }
    return m;
  }
  const model::KvCache& cache() const { return session_.cache(); }
  std::size_t n_threads() const { return pool_.n_threads(); }

 private:
  static sampling::SamplerOptions greedy() {
    sampling::SamplerOptions options;
    options.temperature = 0;
    return options;
  }
  void answer() {
    session_.generate(ids_, sampler_,
                      {.max_new_tokens = kAnswer, .stop_ids = {}, .ignore_eos = true},
                      [](std::int32_t) { return true; });
  }
  void watch(LayerClock* clock) {
    if (clock == nullptr) {
      session_.runner().set_part_watch({});
      return pool_.set_watch({});
    }
    session_.runner().set_part_watch([clock](model::Part part) { clock->begin(part); });
    pool_.set_watch([clock](const base::LoopTimes& times) { clock->loop(times); });
  }

  const model::Model& model_;
  base::ThreadPool pool_;
  engine::Session session_;
  sampling::Sampler sampler_;
  std::vector<std::int32_t> ids_;
};

}  // namespace quern::bench
