// One sequence of a Scheduler, from the queue to its end. Inside of the scheduler; nobody else includes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "engine/scheduler.hpp"

namespace quern::engine {

struct Sequence {
  using Clock = std::chrono::steady_clock;

  SequenceRequest request;         // its prompt is in `text`
  SequenceOutcome outcome;
  std::vector<std::int32_t> text;  // prompt and answer, of which the cache holds the first
  std::size_t n_prompt = 0;
  std::uint64_t tables = 0;        // model::length_hash(): those with equal tables have equal keys and values
  std::size_t slot = 0;            // its sequence in the cache
  bool encoded = true;             // its source, if it has one
  bool started = false;            // the sampler knows the prompt
  bool done = false;               // `outcome` is final

  // Its beginning, as SharedBeginnings sees it.
  bool looked = false;             // for others with the same beginning
  Sequence* leader = nullptr;      // waits until this one holds `common` tokens
  std::size_t common = 0;
  std::vector<std::size_t> cuts;   // ascending: chunks end there, so that what they hold can be kept

  Clock::time_point added = {}, admitted = {}, first_token = {};
};

}  // namespace quern::engine
