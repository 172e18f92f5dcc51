// A run against one of an earlier time or another machine: the JSON that `quern bench -o json` wrote (jsonl too, and
// that of llama-bench). Rows meet by what they measured; speeds are made comparable by the limits of both runs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/result.hpp"

namespace quern::bench {

struct BaseRow {
  std::string model, test, k_type, v_type;
  std::size_t n_threads = 0, n_ubatch = 0;
  std::vector<double> samples_ts;
  std::optional<Limits> limits;
};

// Input errors name the row and the key; keys that are not needed may be anything.
std::vector<BaseRow> parse_base(std::string_view text, std::string_view where);

struct ComparedRow {
  std::string name;             // test, threads
  double mine = 0, base = 0;    // medians, tokens per second
  double scale = 1;             // what base was multiplied by: limits of this machine over those of the base's
  bool normalised = false;      // both runs had limits
  RunComparison result;
};

struct Comparison {
  std::vector<ComparedRow> rows;
  std::vector<std::string> missing;  // rows of this run that the base lacks
  bool regressed() const;
};

// Input error when no row of the base is one of this run. effect: differences up to that fraction are none.
Comparison compare(const std::vector<Row>& rows, const std::vector<BaseRow>& base, double effect,
                   std::string_view where);

std::string comparison_text(const Comparison& comparison);

}  // namespace quern::bench
