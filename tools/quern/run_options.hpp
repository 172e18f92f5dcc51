// Options of `quern run`, and what they mean for search and lengths beside the checkpoint's
// defaults. Not here: sampling (sampling_options.hpp), where prompts come from (prompts.hpp).
#pragma once

#include <optional>
#include <string>

#include "chat_options.hpp"
#include "engine/generation_plan.hpp"
#include "grammar_options.hpp"
#include "model_options.hpp"
#include "prompt_cache.hpp"
#include "prompts.hpp"
#include "sampling_options.hpp"
#include "speculation_options.hpp"

namespace quern::tool {

// What ends an answer beside the model's own end tokens.
struct StopOptions {
  std::vector<std::string> texts;  // --stop, -r
  std::string file;                // --stop-file
  std::vector<std::int32_t> ids;   // --stop-id
};

struct RunOptions {
  ModelOptions model;
  ChatOptions chat_format;
  PromptOptions prompts;
  std::string ids_file, system, system_file, output = "text";
  std::int64_t n_predict = -1;
  bool raw = false, chat = false, no_timings = false, special = false, hide_thinking = false, echo = false, logprobs = false;
  std::size_t top_logprobs = 0;
  SamplingOptions sampling;
  StopOptions stops;
  PromptCacheOptions prompt_cache;
  GrammarOptions grammar;  // the form of the answer
  SpeculationChoice speculation;
  engine::GenerationRequest generation;  // from the options about search and lengths

  bool json() const { return output == "json" || output == "jsonl"; }
  bool wants_scores() const { return logprobs || top_logprobs > 0; }
};

// What decides about an answer: chat format, lengths, stops, sampling, search, form.
void add_answer_options(CLI::App& app, RunOptions& options);
void add_run_options(CLI::App& app, RunOptions& options);

// Usage errors for options that contradict each other; reads --system-file.
void settle_run_options(RunOptions& options);
// --stop, -r and --stop-file, with their escapes.
std::vector<std::string> stop_texts(const StopOptions& options);

// The request about search and lengths, finished.
engine::GenerationRequest generation_request(const RunOptions& options);
// Usage error when something is asked for that a search with beams cannot do.
void check_search(const RunOptions& options, std::size_t n_beams, const SamplerMaker& samplers);

}  // namespace quern::tool
