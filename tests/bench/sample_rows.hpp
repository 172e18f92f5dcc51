// A run as bench would record it, for tests of reports and comparisons.
#pragma once

#include "bench/result.hpp"

namespace quern::bench {

inline Row sample_row(std::size_t n_prompt, std::size_t n_gen, std::vector<std::uint64_t> ns) {
  Row row;
  row.one.n_prompt = n_prompt;
  row.one.n_gen = n_gen;
  row.one.n_threads = 2;
  row.one.k_type = row.one.v_type = "int8";
  row.model = {"models/tiny", "Tiny \"1\", it's", 1048576, 1000000};
  row.work.prompt = {1e9, 0, true};
  row.work.gen = {1e9, 1e8, true};
  for (const std::uint64_t total : ns) {
    Timing timing;
    timing.total_ns = total;
    (n_prompt != 0 ? timing.prompt_ns : timing.gen_ns) = total;
    timing.step_ns.assign(n_gen, n_gen == 0 ? 0 : total / n_gen);
    row.timings.push_back(timing);
  }
  row.counters.wall_seconds = 1;
  row.counters.own_cpu_seconds = 2;
  row.counters.busy_seconds = 2;
  row.counters.steal_seconds = 0;
  row.limits = {"CPU", "avx2", 2, 1e10, 1e12, 1e11, 1e11};
  return row;
}

inline Circumstances sample_run(const Row& row) {
  Circumstances run;
  run.version = "0.1.0";
  run.commit = "abc";
  run.test_time = "2026-11-30T11:00:00Z";
  run.isa = "avx2";
  run.machine = {"CPU", 2, "", ""};
  run.counters = row.counters;
  run.repetitions = row.timings.size();
  return run;
}

}  // namespace quern::bench
