// Options of `quern plan`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "plan/cache_shapes.hpp"
#include "plan/memory.hpp"
#include "plan/work.hpp"

namespace quern::tool {

struct PlanOptions {
  std::string model, draft;
  plan::SourceOptions source;                     // --type, --recipe, ... of a bare configuration
  std::vector<std::size_t> context_lengths;       // empty: the model's
  std::vector<std::string> k_types, v_types;
  std::string isa, params, memory, output = "text";
  plan::PlainShape shape;                         // --layers, --heads, --kv-heads, --head-dim
  plan::RunOptions run;
  double bandwidth = 0, gops = 0, gflops = 0;     // GB/s, GOP/s
  bool measure = false;

  // Settled by settle_plan_options().
  std::vector<plan::CacheTypes> types;            // one per column of results
  std::optional<double> n_parameters;
  std::optional<std::uint64_t> budget;
  plan::Limits limits;
};

void add_plan_options(CLI::App& app, PlanOptions& options);
// Lists, sizes and names read; usage errors name the option.
void settle_plan_options(PlanOptions& options);


}  // namespace quern::tool
