// The timing table of one run, as text and as JSON. Returns strings: printing is the tools'
// business.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/session.hpp"

namespace quern::engine {

// How evenly the experts were used: rows of the busiest expert over the mean of its layer, of the worst
// layer and on average. All 0 without experts.
struct ExpertLoad {
  double worst = 0, mean = 0;
  std::size_t worst_layer = 0;  // counted among the layers with experts
};
ExpertLoad expert_load(const std::vector<std::vector<std::uint64_t>>& loads);

struct Timings {
  double load_seconds = 0, tokenize_seconds = 0;
  PhaseTimes phases;
  std::uint64_t weight_bytes_per_token = 0;  // read by one decode step
  std::uint64_t cache_bytes_per_token = 0;   // read by one decode step, at the mean length
  double read_bandwidth = 0;                 // bytes/s measured (limits.hpp); 0: not measured
  std::uint64_t peak_rss_bytes = 0;
  std::uint64_t weight_file_bytes = 0, weights_resident_bytes = 0;  // of the file; of it in memory now
  std::uint64_t minor_faults = 0, major_faults = 0;                 // page faults of this process so far
  model::CacheBytes cache{};
  ExpertLoad experts{};
};

// Sum of the matrices one decode step reads (a shared layer counts each time).
std::uint64_t weight_bytes_per_token(const model::Model& model);
std::uint64_t weight_bytes_per_token(const model::Branch& branch);

// Most memory that this process held at once; 0 where the system does not say.
std::uint64_t peak_rss_bytes();

// Fills the parts that follow from the session: phases, bytes, peak RSS and page faults of this process.
Timings collect_timings(const model::Model& model, Session& session);

// Value below which the fraction `p` of the samples lies (nearest rank); 0 without samples.
double percentile(std::vector<double> samples, double p);

// One line a phase, ends with a newline.
std::string timings_text(const Timings& timings);
// One object, seconds and bytes.
std::string timings_json(const Timings& timings);

}  // namespace quern::engine
