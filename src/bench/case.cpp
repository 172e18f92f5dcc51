#include "bench/case.hpp"

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::bench {

namespace {

void add(std::vector<Case>& cases, Case one, std::size_t n_prompt, std::size_t n_gen) {
  if (n_prompt == 0 && n_gen == 0) return;
  if (cases.size() == kMaxCases) base::usage_error("quern bench", base::cat("more than ", kMaxCases, " combinations"));
  one.n_prompt = n_prompt;
  one.n_gen = n_gen;
  cases.push_back(std::move(one));
}

// The rows of one depth, model, and everything else but the lengths.
void add_lengths(std::vector<Case>& cases, const Grid& grid, Case one) {
  for (const std::size_t parallel : grid.parallel) {
    one.n_parallel = parallel;
    for (const std::size_t p : grid.prompts)
      for (const std::size_t n : grid.answers) add(cases, one, p, n);
  }
  if (!grid.parallel.empty()) return;
  for (const std::size_t p : grid.prompts) add(cases, one, p, 0);
  for (const std::size_t n : grid.answers) add(cases, one, 0, n);
  for (const auto& [p, n] : grid.pairs) add(cases, one, p, n);
}

void add_threads(std::vector<Case>& cases, const Grid& grid, Case one) {
  for (const std::size_t threads : grid.threads) {
    one.n_threads = threads;
    for (const std::size_t depth : grid.depths) {
      one.n_depth = depth;
      add_lengths(cases, grid, one);
    }
  }
}

void add_types(std::vector<Case>& cases, const Grid& grid, Case one) {
  for (const std::string& k : grid.k_types) {
    one.k_type = k;
    for (const std::string& v : grid.v_types) {
      one.v_type = v;
      add_threads(cases, grid, one);
    }
  }
}

}  // namespace

std::string Case::label() const {
  std::string name;
  if (n_prompt != 0) name = base::cat("pp", n_prompt);
  if (n_gen != 0) name += base::cat(name.empty() ? "" : "+", "tg", n_gen);
  if (n_parallel != 0) name += base::cat(" x", n_parallel);
  return n_depth == 0 ? name : base::cat(name, " @ d", n_depth);
}

std::vector<Case> cases_of(const Grid& grid) {
  std::vector<Case> cases;
  for (const std::size_t batch : grid.batches)
    for (const std::size_t ubatch : grid.ubatches) {
      Case one;
      one.model = grid.model;
      one.n_batch = batch;
      one.n_ubatch = ubatch;
      add_types(cases, grid, one);
    }
  if (cases.empty()) base::usage_error("quern bench", "nothing to measure: give -p N, -n N or -pg PP,TG");
  return cases;
}

}  // namespace quern::bench
