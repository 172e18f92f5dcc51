// quern plan: will it fit, and how fast can it be - from the header of a weight file or a bare configuration, in
// milliseconds, before any weight is read.

#include <algorithm>
#include <cmath>
#include <iostream>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/strings.hpp"
#include "base/thread_pool.hpp"
#include "bench/limits.hpp"
#include "command.hpp"
#include "kernels/select.hpp"
#include "model_options.hpp"
#include "plan_report.hpp"
#include "quant/formats.hpp"

namespace quern::tool {

namespace {

// Bits of a weight in a large matrix of the format.
double bits_of_type(const std::string& type) {
  const quant::FormatTraits* format = quant::find_format(type.empty() ? "q4" : type);
  if (format == nullptr) base::usage_error("--type", base::cat("unknown type \"", base::printable(type, 40), "\""));
  return quant::bits_per_weight(*format, 4096, 4096);
}

std::uint64_t bytes_of_parameters(const PlanOptions& options) {
  return static_cast<std::uint64_t>(std::llround(*options.n_parameters * bits_of_type(options.source.convert.type) / 8));
}

void add_cache_rows(const std::vector<plan::CacheShape>& shapes, const PlanOptions& options, PlanReport& report) {
  for (const plan::CacheTypes& types : options.types)
    for (const plan::CacheShape& shape : shapes) {
      CacheRow row{types, shape, plan::cache_per_token(shape, types), {}, plan::tokens_equal(shape, types, report.weight_bytes)};
      for (const std::size_t context : report.contexts)
        row.bytes.push_back(plan::cache_formula(shape, types, context).total());
      report.cache.push_back(std::move(row));
    }
}

PlanReport plan_shape(const PlanOptions& options) {
  PlanReport report;
  const plan::PlainShape& s = options.shape;
  report.name = base::cat(s.layers, " layers, ", s.heads, " heads of ", s.head_dim, ", ", s.kv_heads, " KV heads");
  report.type = options.source.convert.type.empty() ? "q4" : options.source.convert.type;
  report.parameters = static_cast<std::uint64_t>(std::llround(*options.n_parameters));
  report.weight_bytes = bytes_of_parameters(options);
  report.contexts = options.context_lengths.empty() ? std::vector<std::size_t>{4096} : options.context_lengths;
  add_cache_rows(plan::cache_shapes(s), options, report);
  return report;
}

void add_runs(const plan::ShapeModel& model, const plan::ShapeModel* draft, PlanOptions& options, PlanReport& report) {
  for (const plan::CacheTypes& types : options.types) {
    options.run.shape.cache.k_type = types.k;
    options.run.shape.cache.v_type = types.v;
    for (const std::size_t context : report.contexts) {
      options.run.context = context;
      PlannedRun run{context, types, plan::plan_memory(model, draft, options.run), {}, {}, {}};
      const std::size_t source = options.run.source_tokens != 0 ? options.run.source_tokens : context;
      const plan::WorkShape shape{types, context, run.memory->need.step_tokens,
                                  std::max(options.run.sequences, options.run.beams), source};
      run.encode = plan::encode_work(*model.model, shape);
      run.prefill = plan::prefill_work(*model.model, shape);
      if (model.model->decoder) run.decode = plan::decode_work(*model.model, shape);
      report.runs.push_back(std::move(run));
    }
  }
}

void add_fitting(const plan::ShapeModel& model, const plan::ShapeModel* draft, PlanOptions& options, PlanReport& report) {
  if (!options.budget) return;
  for (const plan::CacheTypes& types : options.types) {
    options.run.shape.cache.k_type = types.k;
    options.run.shape.cache.v_type = types.v;
    FittingRun fitting{types, {}, report.contexts.front(), {}};
    const std::size_t limit = report.max_positions;
    fitting.context = plan::longest_context(model, draft, options.run, *options.budget, limit);
    options.run.context = fitting.sequences_context;
    fitting.sequences = plan::most_sequences(model, draft, options.run, *options.budget);
    report.fitting.push_back(fitting);
  }
}

PlanReport plan_model(PlanOptions& options) {
  const kernels::Kernels& kernels = kernels::select_kernels(options.isa);
  if (options.run.shape.n_threads == 0) options.run.shape.n_threads = base::default_thread_count();
  const plan::ShapeModel model = plan::open_shapes(options.model, options.source, kernels);
  std::optional<plan::ShapeModel> draft;
  if (!options.draft.empty()) draft = plan::open_shapes(options.draft, options.source, kernels);
  const contract::Contract& contract = model.model->contract;
  PlanReport report;
  report.name = contract.name.empty() ? contract.family : contract.name;
  report.where = model.where;
  report.type = model.type;
  report.parameters = options.n_parameters ? static_cast<std::uint64_t>(std::llround(*options.n_parameters))
                                           : contract.counts.parameters_by_formula;
  report.weight_bytes = options.n_parameters ? bytes_of_parameters(options) : model.file_bytes;
  report.max_positions = contract.max_positions;
  report.contexts = options.context_lengths.empty() ? std::vector<std::size_t>{contract.max_positions} : options.context_lengths;
  note_long_context(*std::max_element(report.contexts.begin(), report.contexts.end()), contract);
  const plan::ShapeModel* const beside = draft ? &*draft : nullptr;
  add_runs(model, beside, options, report);
  add_cache_rows(plan::cache_shapes(*model.model), options, report);
  add_fitting(model, beside, options, report);
  return report;
}

// What of the limits was not given, as `quern bench` measures it.
void measure_limits(const PlanOptions& options, plan::Limits& limits) {
  constexpr double kSeconds = 0.5;
  base::ThreadPool pool(std::max<std::size_t>(1, options.run.shape.n_threads));
  const bench::Limits best = bench::measure_limits(kernels::select_kernels(options.isa), pool, kSeconds);
  if (options.bandwidth == 0) limits.bandwidth = best.read_bytes_per_s;
  if (options.gops == 0) limits.int8_rate = best.int8_ops_per_s;
  if (options.gflops == 0) limits.float_rate = best.f32_ops_per_s;
}

}  // namespace

int cmd_plan(const std::vector<std::string>& arguments) {
  CLI::App app("Says before anything is loaded what a model will need and how fast it can be: memory against what is free,\n"
               "cache bytes by formula, operations and bytes of a token with the bound that holds. Reads no weights.",
               "quern plan");
  PlanOptions options;
  options.run.shape.n_threads = 0;
  add_plan_options(app, options);
  if (parse_arguments(app, arguments)) return 0;
  settle_plan_options(options);
  PlanReport report = options.model.empty() ? plan_shape(options) : plan_model(options);
  report.machine = plan::machine_memory();
  if (options.measure) measure_limits(options, options.limits);
  report.limits = options.limits;
  report.float_rate_taken = options.gflops == 0 && !options.measure;
  std::cout << (options.output == "json" ? plan_json(options, report) : plan_text(options, report));
  return 0;
}

}  // namespace quern::tool
