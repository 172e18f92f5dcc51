#include "bench_bed.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "kernels/select.hpp"
#include "model_options.hpp"
#include "signals.hpp"

namespace quern::tool {

namespace {

bench::ModelFacts facts_of(const model::Model& model, const std::string& path) {
  bench::ModelFacts facts;
  facts.path = base::printable(path);
  facts.name = model.contract.name;
  for (const weights::TensorView& tensor : model.weights.tensors()) facts.size_bytes += tensor.bytes.size();
  facts.n_params = model.contract.counts.parameters_in_tensors;
  return facts;
}

// QUERN_BENCH_SLOWDOWN=0.05 makes every repetition that much longer: tests of --against put a regression in by it.
double slowdown() {
  const char* text = std::getenv("QUERN_BENCH_SLOWDOWN");
  double fraction = 0;
  if (text == nullptr) return 0;
  const std::string_view word(text);
  std::from_chars(word.data(), word.data() + word.size(), fraction);
  return std::clamp(fraction, 0.0, 10.0);
}

void wait_longer(bench::Timing& timing, double fraction) {
  const auto more = static_cast<std::uint64_t>(static_cast<double>(timing.total_ns) * fraction);
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(more);
  while (std::chrono::steady_clock::now() < until) {
  }
  timing.total_ns += more;
}

}  // namespace

BenchBed::BenchBed(const BenchOptions& options)
    : options_(options), kernels_(kernels::select_kernels(options.isa)) {
  for (std::size_t i = 0; i < options.models.size(); ++i) {
    const std::string& path = options.models[i];
    models_.push_back({model::Model::load(path, kernels_), {}});
    models_[i].facts = facts_of(*models_[i].model, path);
    for (bench::Case& one : bench::cases_of(grid_of(options, *models_[i].model, i))) {
      check_context(one);
      bench::Row row;
      row.one = std::move(one);
      row.model = models_[i].facts;
      rows_.push_back(std::move(row));
    }
  }
  make_workloads();
}

void BenchBed::check_context(const bench::Case& one) const {
  const contract::Contract& contract = models_[one.model].model->contract;
  if (contract.kind != contract::ModelKind::decoder) return;  // the workload checks their positions
  const std::size_t context = options_.context != 0 ? options_.context : contract.max_positions;
  if (one.held() > context)
    base::reject(one.label(), "the row is longer than the context", base::cat(one.held(), " tokens"),
                 base::cat("at most ", context, "; -c N goes beyond the model's"));
}

void BenchBed::make_workloads() {
  for (const bench::Row& row : rows_) {
    const bench::Shape shape = bench::Shape::of(row.one);
    const auto found = std::find_if(places_.begin(), places_.end(), [&](const Place& p) { return p.shape == shape; });
    place_of_row_.push_back(static_cast<std::size_t>(found - places_.begin()));
    if (found == places_.end()) places_.push_back({shape, nullptr});
  }
  for (std::size_t place = 0; place < places_.size(); ++place) {
    std::vector<bench::Case> cases;
    for (std::size_t row = 0; row < rows_.size(); ++row)
      if (place_of_row_[row] == place) cases.push_back(rows_[row].one);
    model::CacheOptions types;
    types.k_type = parse_cache_type(cases.front().k_type, "-ctk");
    types.v_type = parse_cache_type(cases.front().v_type, "-ctv");
    const model::Model& model = *models_[cases.front().model].model;
    places_[place].workload =
        std::make_unique<bench::Workload>(model, pool(cases.front().n_threads), cases, types, options_.deterministic);
    places_[place].workload->set_stop(interrupted);
  }
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    rows_[row].n_source = places_[place_of_row_[row]].workload->n_source();
    rows_[row].work = bench::count_work(*models_[rows_[row].one.model].model, rows_[row].one, rows_[row].n_source);
  }
}

base::ThreadPool& BenchBed::pool(std::size_t n_threads) {
  std::unique_ptr<base::ThreadPool>& pool = pools_[n_threads];
  if (!pool) pool = std::make_unique<base::ThreadPool>(n_threads);
  return *pool;
}

bool BenchBed::run(std::size_t row, bench::Timing& timing) {
  if (!places_[place_of_row_[row]].workload->run(rows_[row].one, timing)) return false;
  if (const double fraction = slowdown(); fraction > 0) wait_longer(timing, fraction);
  return true;
}

}  // namespace quern::tool
