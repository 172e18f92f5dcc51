// Options of `quern run`, and what they mean for sampling and search beside the checkpoint's defaults.
#pragma once

#include <optional>
#include <string>

#include "engine/generation_plan.hpp"
#include "grammar_options.hpp"
#include "model_options.hpp"

namespace quern::tool {

struct RunOptions {
  ModelOptions model;
  std::optional<std::string> prompt;
  std::string file, ids_file, system, output = "text";
  std::int64_t n_predict = -1, seed = -1;
  bool raw = false, chat = false, no_timings = false, special = false;
  std::optional<double> temperature, top_p, min_p, repeat_penalty;
  std::optional<std::size_t> top_k;
  GrammarOptions grammar;                // the form of the answer
  engine::GenerationRequest generation;  // from the options about search and lengths
};

void add_run_options(CLI::App& app, RunOptions& options);

// What the user says, else what the checkpoint says, else quern's defaults: a decoder samples, an
// encoder-decoder does not.
sampling::SamplerOptions sampler_options(const contract::Contract& contract, const RunOptions& options);

// The request about search and lengths, finished.
engine::GenerationRequest generation_request(const RunOptions& options);

}  // namespace quern::tool
