#include "run_options.hpp"

#include <random>

#include "arguments.hpp"
#include "contract/limits.hpp"

namespace quern::tool {

namespace {

// "--name NUMBER", absent unless given.
void add_number(CLI::App& app, const char* name, std::optional<double>& target, CLI::Validator check,
                const char* help) {
  app.add_option_function<double>(name, [&target](const double& value) { target = value; }, help)->check(check);
}

void add_count(CLI::App& app, const char* name, std::optional<std::size_t>& target, std::int64_t low,
               std::int64_t high, const char* help) {
  app.add_option_function<std::size_t>(name, [&target](const std::size_t& value) { target = value; }, help)
      ->check(CLI::Range(low, high));
}

void add_sampling_options(CLI::App& app, RunOptions& options) {
  add_number(app, "--temp,--temperature", options.temperature, finite_range(0.0, 100.0),
             "temperature; 0 is greedy (the model's, else 0.8)");
  add_number(app, "--top-p", options.top_p, finite_range(0.0, 1.0), "nucleus sampling (0.95); 1 is off");
  add_number(app, "--min-p", options.min_p, finite_range(0.0, 1.0),
             "least probability beside the best token's (0.05); 0 is off");
  add_number(app, "--repeat-penalty", options.repeat_penalty, finite_range(0.01, 100.0),
             "penalty of the last 64 tokens (1 = off), in place of --repetition-penalty");
  add_count(app, "--top-k", options.top_k, 0, std::int64_t{1} << 24, "keep the k best tokens (40); 0 is off");
  app.add_option("-s,--seed", options.seed, "seed; the same seed gives the same answer (-1 = a new one, printed)")
      ->check(CLI::Range(std::int64_t{-1}, INT64_MAX));
}

void add_search_options(CLI::App& app, engine::GenerationRequest& request) {
  constexpr std::int64_t kMost = std::int64_t{1} << 26;
  add_count(app, "--num-beams", request.n_beams, 1, contract::kMaxBeams,
            "beam search with so many beams (the model's, else 1: none)");
  add_number(app, "--length-penalty", request.length_penalty, finite_range(-100.0, 100.0),
             "above 0 a search prefers long answers (the model's, else 1)");
  app.add_option_function<std::string>(
         "--early-stopping",
         [&request](const std::string& word) { request.early_stopping = engine::early_stopping_of(word); },
         "true, false or never: when a search with all its answers ends (the model's, else false)")
      ->check(CLI::IsMember({"true", "false", "never"}));
  app.add_option("--num-return-sequences", request.n_return, "answers of a search, best first (1)")
      ->check(CLI::Range(std::int64_t{1}, contract::kMaxBeams));
  add_count(app, "--no-repeat-ngram-size", request.no_repeat_ngram, 0, kMost,
            "no run of so many tokens comes twice (the model's, else 0: off)");
  add_number(app, "--repetition-penalty", request.repetition_penalty, finite_range(0.01, 100.0),
             "penalty of all tokens so far (the model's, else 1: off)");
  add_count(app, "--min-new-tokens", request.min_new_tokens, 0, kMost, "no end before so many new tokens");
  app.add_flag("--ignore-eos", request.ignore_ends, "go on after the end token");
}

}  // namespace

void add_run_options(CLI::App& app, RunOptions& options) {
  add_model_options(app, options.model);
  add_cache_options(app, options.model);
  CLI::Option* prompt = app.add_option_function<std::string>(
      "-p,--prompt", [&](const std::string& text) { options.prompt = text; },
      "the prompt, or an encoder-decoder's source (default: standard input)");
  CLI::Option* file = app.add_option("-f,--file", options.file, "a file with the prompt (- for standard input)");
  CLI::Option* ids = app.add_option("--ids-file", options.ids_file, "token ids instead of text");
  prompt->excludes(file)->excludes(ids);
  file->excludes(ids);
  app.add_option("-n,--predict,--n-predict", options.n_predict, "most new tokens (-1 = until the model stops)")
      ->check(CLI::Range(std::int64_t{-1}, std::int64_t{1} << 26));
  CLI::Option* system = app.add_option("--system,--system-prompt", options.system, "-sys: system message of the chat");
  CLI::Option* raw = app.add_flag("--no-conversation,--raw", options.raw,
                                  "-no-cnv: complete the raw text, without the chat format");
  CLI::Option* chat = app.add_flag("--conversation", options.chat, "-cnv: insist on the chat format");
  raw->excludes(chat)->excludes(system);
  ids->excludes(chat)->excludes(system);
  app.add_flag("--special", options.special, "print control tokens too");
  app.add_flag("--no-timings", options.no_timings, "no timing table");
  app.add_option("--output", options.output, "text, ids or json (text)")->check(CLI::IsMember({"text", "ids", "json"}));
  add_sampling_options(app, options);
  add_search_options(app, options.generation);
  add_grammar_options(app, options.grammar);
  app.footer("examples:\n  quern run -m MODEL -p \"Why is the sky blue?\" --temp 0\n"
             "  quern run -m MODEL -no-cnv -p \"Once upon a time\" -n 100 -s 1\n"
             "  quern run -m TRANSLATOR -p \"Good morning.\" --num-beams 4\n"
             "  quern run -m MODEL -f prompt.txt --output json | jq -r .text");
}

sampling::SamplerOptions sampler_options(const contract::Contract& contract, const RunOptions& options) {
  const contract::Generation& defaults = contract.generation;
  sampling::SamplerOptions sampler;
  const bool samples = defaults.sample.value_or(contract.kind == contract::ModelKind::decoder);
  const bool greedy = !samples && !options.temperature;
  sampler.temperature = greedy ? 0.0 : options.temperature.value_or(defaults.temperature.value_or(sampler.temperature));
  sampler.top_p = options.top_p.value_or(defaults.top_p.value_or(sampler.top_p));
  sampler.min_p = options.min_p.value_or(defaults.min_p.value_or(sampler.min_p));
  sampler.repeat_penalty = options.repeat_penalty.value_or(sampler.repeat_penalty);
  const auto default_top_k = defaults.top_k ? static_cast<std::size_t>(*defaults.top_k) : sampler.top_k;
  sampler.top_k = options.top_k.value_or(default_top_k);
  sampler.seed = options.seed >= 0 ? static_cast<std::uint64_t>(options.seed) : std::random_device{}();
  return sampler;
}

engine::GenerationRequest generation_request(const RunOptions& options) {
  engine::GenerationRequest request = options.generation;
  if (options.n_predict >= 0) request.max_new_tokens = static_cast<std::size_t>(options.n_predict);
  if (options.repeat_penalty && !request.repetition_penalty) request.repetition_penalty = 1;
  request.sample = options.temperature && *options.temperature > 0;
  return request;
}

}  // namespace quern::tool
