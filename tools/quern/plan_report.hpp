// What `quern plan` found, and its two forms.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/machine.hpp"
#include "plan_options.hpp"

namespace quern::tool {

// One context with one pair of cache types.
struct PlannedRun {
  std::size_t context = 0;
  plan::CacheTypes types;
  std::optional<plan::MemoryPlan> memory;  // of a model
  plan::PhaseWork encode, prefill, decode;  // empty: there is no such phase
};

struct FittingRun {  // --memory, per pair of types
  plan::CacheTypes types;
  std::optional<std::size_t> context;    // longest with the sequences asked for
  std::size_t sequences_context = 0;     // the context of
  std::optional<std::size_t> sequences;  // the most sequences
};

struct CacheRow {
  plan::CacheTypes types;
  plan::CacheShape shape;
  plan::CacheFormula per_token;
  std::vector<std::uint64_t> bytes;       // of the contexts
  std::optional<std::uint64_t> equal_at;  // tokens whose cache is as large as the weights
};

struct PlanReport {
  std::string name, where, type;
  std::uint64_t parameters = 0, weight_bytes = 0;
  std::size_t max_positions = 0;          // 0: not known
  std::vector<std::size_t> contexts;
  std::vector<PlannedRun> runs;           // empty without a model
  std::vector<CacheRow> cache;
  std::vector<FittingRun> fitting;
  plan::MachineMemory machine;
  plan::Limits limits;
  bool float_rate_taken = false;          // from --gops
};

std::string plan_text(const PlanOptions& options, const PlanReport& report);
std::string plan_json(const PlanOptions& options, const PlanReport& report);

// Rounded half up: 16,777,216,000 bytes are "15.63 GiB".
std::string size_text(double bytes);

}  // namespace quern::tool
