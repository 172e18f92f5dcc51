// Options of `quern eval`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eval/choices.hpp"
#include "eval/text.hpp"
#include "model_options.hpp"

namespace quern::tool {

struct EvalOptions {
  ModelOptions model;
  std::string file, ids_file, choices_file, prompt_format, output = "text";
  std::vector<std::string> against;           // other models
  std::vector<std::string> kv;                // cache types, "int8" or "k/v"
  std::size_t chunks = 0, stride = 0, tasks = 0;
  std::optional<std::size_t> depth;
};

void add_eval_options(CLI::App& app, EvalOptions& options);
void settle_eval_options(EvalOptions& options);

}  // namespace quern::tool
