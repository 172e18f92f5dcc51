// Options of `quern batch`, and which of them an output remembers: those that change answers or their lines.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batch/record.hpp"
#include "run_options.hpp"

namespace quern::tool {

struct BatchOptions {
  RunOptions answer;  // what decides about answers; a line's own fields come first
  std::string input = "-", output = "-";
  std::string format = "auto";
  std::size_t n_parallel = 8;
  bool resume = false, overwrite = false, unordered = false, ids = false, quiet = false;
  std::size_t progress_seconds = 60;
  std::size_t sync_lines = 1000;
};

void add_batch_options(CLI::App& app, BatchOptions& options);
// Usage errors for options that contradict each other; reads --system-file.
void settle_batch_options(BatchOptions& options);

// Name and value of every given option that a resumed run must share. Files are named by a hash of what they hold.
std::vector<std::pair<std::string, std::string>> remembered_options(const CLI::App& app);

}  // namespace quern::tool
