// Everything a benchmark measures on, made once: models, threads, caches, and the rows in the order of the report.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/thread_pool.hpp"
#include "bench/result.hpp"
#include "bench_options.hpp"
#include "model/model.hpp"

namespace quern::tool {

class BenchBed {
 public:
  // Loads the models; all rows are checked before anything is measured.
  explicit BenchBed(const BenchOptions& options);

  std::vector<bench::Row>& rows() { return rows_; }
  const model::Model& model(std::size_t index) const { return *models_[index].model; }
  base::ThreadPool& pool(std::size_t n_threads);
  const kernels::Kernels& kernels() const { return kernels_; }

  // One repetition of a row; false when it was interrupted. Nothing is recorded.
  bool run(std::size_t row, bench::Timing& timing);

 private:
  struct Loaded {
    std::unique_ptr<model::Model> model;
    bench::ModelFacts facts;
  };
  struct Place {
    bench::Shape shape;
    std::unique_ptr<bench::Workload> workload;
  };
  void check_context(const bench::Case& one) const;
  void make_workloads();

  const BenchOptions& options_;
  const kernels::Kernels& kernels_;
  std::vector<Loaded> models_;
  std::map<std::size_t, std::unique_ptr<base::ThreadPool>> pools_;
  std::vector<Place> places_;
  std::vector<std::size_t> place_of_row_;
  std::vector<bench::Row> rows_;
};

}  // namespace quern::tool
