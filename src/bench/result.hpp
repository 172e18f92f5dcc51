// What a run of the benchmark found: rows, and the circumstances they were measured in. The figures that reports
// print are derived here, once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/case.hpp"
#include "bench/limits.hpp"
#include "bench/machine.hpp"
#include "bench/statistics.hpp"
#include "bench/work.hpp"
#include "bench/workload.hpp"

namespace quern::bench {

struct ModelFacts {
  std::string path, name;
  std::uint64_t size_bytes = 0, n_params = 0;
};

struct Row {
  Case one;
  ModelFacts model;
  std::size_t n_source = 0;
  CaseWork work;
  Limits limits;                     // of its threads; zeros: not measured
  std::vector<Timing> timings;       // one per repetition
  Counters counters;                 // of the repetitions, the clock's sides included
  std::optional<double> perplexity;  // of the model with this row's cache types
};

struct Circumstances {
  std::string version, commit, test_time;  // ISO 8601, UTC
  std::string isa;
  MachineInfo machine;
  Clock clock_before, clock_after;
  std::optional<double> load_before, load_after;
  Counters counters;               // of all repetitions
  std::uint64_t rss_bytes = 0, peak_rss_bytes = 0;
  std::size_t repetitions = 0;     // asked for
  double stored_read_bytes_per_s = 0;  // of --limits, an earlier time; 0: none
  bool interrupted = false;
};

struct Figures {
  Summary ns, ts;                          // of a repetition: nanoseconds, tokens per second
  std::optional<Summary> prompt_ts, gen_ts;  // of the parts, where a row has both
  std::optional<double> ttft_ns;           // median time to the first token's logits; rows with a prompt
  std::optional<double> token_p50_ns, token_p95_ns, token_p99_ns;  // a decode step; rows with an answer
  // While decoding: weights and cache read, per second. While computing: operations per second, and their peak.
  std::optional<double> bytes_per_s, bytes_share;
  std::optional<double> ops_per_s, ops_share;
  bool integer = false;                    // the peak is that of byte products
};
Figures figures_of(const Row& row);

// Whether to believe the figures: the reasons not to, each a clause for people. Empty: none found.
std::vector<std::string> doubts(const Circumstances& run, const std::vector<Row>& rows);

}  // namespace quern::bench
