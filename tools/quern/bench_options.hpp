// The options of `quern bench`, and the rows they span for a model.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "bench/case.hpp"
#include "bench/report.hpp"
#include "model/model.hpp"

namespace quern::tool {

struct BenchOptions {
  std::vector<std::string> models;
  // As typed; "" or none: the defaults, which depend on the model (grid_of).
  std::vector<std::string> prompts, answers, pairs, depths, batches, ubatches, threads, parallel;
  std::vector<std::string> k_types, v_types;
  std::string isa, format = "md", format_error, compare, against, eval;
  std::size_t context = 0, repetitions = 5, eval_tokens = 4096;
  double budget_seconds = 60, effect_percent = 2.5;
  bool no_warmup = false, deterministic = false, progress = false;
  bool limits = false, no_limits = false, step_times = false;
  bool worker = false;  // a child of --against
};

void add_bench_options(CLI::App& app, BenchOptions& options);
// What no single option's check sees; usage errors.
void check_bench_options(const BenchOptions& options);

// The rows for model number `index`: what the command line says, and 512 prompt tokens (or as many as the model
// takes) and 128 generated ones where it says nothing. An encoder has no tg rows then.
bench::Grid grid_of(const BenchOptions& options, const model::Model& model, std::size_t index);
std::vector<std::size_t> thread_counts(const BenchOptions& options);

}  // namespace quern::tool
