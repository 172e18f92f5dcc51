// What one row of a benchmark measures, its label, and the grid of rows that the options span.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace quern::bench {

struct Case {
  std::size_t model = 0;                       // index among the models measured
  std::size_t n_prompt = 0, n_gen = 0;         // per sequence; both: one after the other
  std::size_t n_depth = 0;                     // tokens in the cache before
  std::size_t n_parallel = 0;                  // sequences that decode together; 0: one, and no batch row
  std::size_t n_batch = 2048, n_ubatch = 512;  // tokens given at once, and computed at once
  std::size_t n_threads = 1;
  std::string k_type, v_type;                  // of the cache, as typed

  std::size_t n_sequences() const { return n_parallel == 0 ? 1 : n_parallel; }
  std::size_t tokens() const { return n_sequences() * (n_prompt + n_gen); }  // measured
  std::size_t held() const { return n_depth + n_prompt + n_gen; }            // most of one sequence
  std::string label() const;  // "pp512", "tg128 @ d4096", "pp512+tg128", "pp128+tg32 x16"
};

// Every combination becomes a row of one model, in the order of llama-bench: sizes outermost, then types, threads,
// depths; of each the prompts, the answers, the pairs. With n_parallel: prompts x answers x parallel instead.
struct Grid {
  std::size_t model = 0;
  std::vector<std::size_t> prompts, answers, depths, batches, ubatches, threads, parallel;
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::vector<std::string> k_types, v_types;
};
inline constexpr std::size_t kMaxCases = 2000;

// Usage error when there are none, or more than kMaxCases.
std::vector<Case> cases_of(const Grid& grid);

}  // namespace quern::bench
