#include "run_options.hpp"

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "contract/limits.hpp"
#include "escapes.hpp"
#include "quantity.hpp"

namespace quern::tool {

namespace {

// "--name NUMBER", absent unless given.
void add_number(CLI::App& app, const char* name, std::optional<double>& target, CLI::Validator check,
                const char* help) {
  app.add_option_function<double>(name, [&target](const double& value) { target = value; }, help)
      ->check(check)->group("Search and length");
}

void add_count(CLI::App& app, const char* name, std::optional<std::size_t>& target, std::int64_t low,
               std::int64_t high, const char* help) {
  app.add_option_function<std::size_t>(name, [&target](const std::size_t& value) { target = value; }, help)
      ->transform(count_range(low, high))->group("Search and length");
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
      ->check(CLI::IsMember({"true", "false", "never"}))->group("Search and length");
  app.add_option("--num-return-sequences", request.n_return, "answers of a search, best first, or so many samples (1)")
      ->check(CLI::Range(std::int64_t{1}, contract::kMaxBeams))->group("Search and length");
  add_count(app, "--no-repeat-ngram-size", request.no_repeat_ngram, 0, kMost,
            "no run of so many tokens comes twice (the model's, else 0: off)");
  add_number(app, "--repetition-penalty", request.repetition_penalty, finite_range(0.01, 100.0),
             "penalty of all tokens so far (the model's, else 1: off)");
  add_count(app, "--min-new-tokens", request.min_new_tokens, 0, kMost, "no end before so many new tokens");
  app.add_flag("--ignore-eos", request.ignore_ends, "go on after the end token")->group("Search and length");
}

void add_stop_options(CLI::App& app, StopOptions& stops) {
  app.add_option("--stop,-r,--reverse-prompt", stops.texts,
                 "a text that ends the answer and is no part of it; repeatable, with escapes")
      ->allow_extra_args(false)->type_name("TEXT");
  app.add_option("--stop-file", stops.file, "such texts, one a line")->type_name("FILE");
  app.add_option("--stop-id", stops.ids, "a token id that ends the answer; repeatable")
      ->allow_extra_args(false)->check(CLI::Range(std::int64_t{0}, std::int64_t{INT32_MAX}))->type_name("ID");
}

void add_conversation_options(CLI::App& app, RunOptions& options) {
  CLI::Option* system =
      app.add_option("--system,--system-prompt", options.system, "-sys: system message of the chat");
  CLI::Option* file = app.add_option("--system-file,--system-prompt-file", options.system_file,
                                     "-sysf: a file with the system message");
  CLI::Option* raw = app.add_flag("--no-conversation,--raw", options.raw,
                                  "-no-cnv: complete the raw text, without the chat format");
  CLI::Option* chat = app.add_flag("--conversation", options.chat, "-cnv: insist on the chat format");
  raw->excludes(chat)->excludes(system)->excludes(file);
  system->excludes(file);
  if (CLI::Option* ids = app.get_option_no_throw("--ids-file")) ids->excludes(chat)->excludes(system)->excludes(file);
}

}  // namespace

void add_answer_options(CLI::App& app, RunOptions& options) {
  add_conversation_options(app, options);
  add_chat_options(app, options.chat_format);
  app.add_option("-n,--predict,--n-predict", options.n_predict,
                 "most new tokens (-1: until the model stops or its own limit, -2: until the context is full)")
      ->transform(count_range(-2, std::int64_t{1} << 26));
  add_stop_options(app, options.stops);
  CLI::Option* special = app.add_flag("--special", options.special, "print control tokens too");
  app.add_flag("--hide-thinking,--hidethinking", options.hide_thinking,
               "leave out what the model thinks before its answer to a chat")
      ->excludes(special);
  add_sampling_options(app, options.sampling);
  add_search_options(app, options.generation);
  add_grammar_options(app, options.grammar);
}

void add_run_options(CLI::App& app, RunOptions& options) {
  add_model_options(app, options.model);
  add_cache_options(app, options.model);
  add_prompt_options(app, options.prompts);
  add_answer_options(app, options);
  app.add_option("--output", options.output, "text, ids, json (one object) or jsonl (one a line) (text)")
      ->check(CLI::IsMember({"text", "ids", "json", "jsonl"}));
  app.add_flag("--logprobs", options.logprobs, "in JSON: each token's log-probability by the raw logits");
  app.add_option("--top-logprobs", options.top_logprobs, "and those of the N best tokens beside it")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1000}))->type_name("N");
  app.add_flag("--echo", options.echo, "the prompt before the answer");
  app.add_flag("--no-timings", options.no_timings, "no timing table");
  add_prompt_cache_options(app, options.prompt_cache);
  add_speculation_options(app, options.speculation);
  app.footer("examples:\n  quern run -m MODEL -p \"Why is the sky blue?\" --temp 0\n"
             "  quern run -m MODEL -no-cnv -p \"Once upon a time\" -n 100 -s 1 --stop \"\\n\\n\"\n"
             "  quern run -m TRANSLATOR -p \"Good morning.\" --num-beams 4\n"
             "  quern run -m MODEL -f prompt.txt --output json | jq -r .text\n"
             "  quern run -m MODEL --prompts-file questions.jsonl --output jsonl --top-logprobs 5\n"
             "docs/RUN.md has the output formats and every rule.");
}

void settle_run_options(RunOptions& options) {
  if (!options.system_file.empty()) options.system = read_input(options.system_file);
  options.ids_file = options.prompts.ids_file;
  if (options.wants_scores() && !options.json())
    base::usage_error("--logprobs, --top-logprobs", "go into JSON: add --output json or --output jsonl");
  settle_speculation(options.speculation);
  if (options.echo && options.output == "ids") base::usage_error("--echo", "has no place in --output ids");
}

std::vector<std::string> stop_texts(const StopOptions& options) {
  std::vector<std::string> texts;
  for (const std::string& text : options.texts) texts.push_back(unescaped(text));
  if (!options.file.empty())
    for (std::string& line : read_text_lines(options.file)) texts.push_back(std::move(line));
  return texts;
}

engine::GenerationRequest generation_request(const RunOptions& options) {
  engine::GenerationRequest request = options.generation;
  const SamplingOptions& sampling = options.sampling;
  if (options.n_predict >= 0) request.max_new_tokens = static_cast<std::size_t>(options.n_predict);
  if (options.n_predict == -2) request.max_new_tokens = std::size_t{1} << 40;  // the context decides
  if (sampling.repeat_penalty && !request.repetition_penalty) request.repetition_penalty = 1;
  request.sample = (sampling.temperature && *sampling.temperature > 0) || sampling.values.mirostat != 0 ||
                   sampling.values.dynatemp_range > 0 || sampling.values.adaptive_target >= 0;
  return request;
}

void check_search(const RunOptions& options, std::size_t n_beams, const SamplerMaker& samplers) {
  if (n_beams < 2) return;
  const auto refuse = [&](const char* option) {
    base::usage_error(option, base::cat("works token by token, not in a search with ", n_beams,
                                        " beams: add --num-beams 1"));
  };
  if (options.wants_scores()) refuse("--logprobs");
  if (!options.prompt_cache.path.empty()) refuse("--prompt-cache");
  if (!stop_texts(options.stops).empty()) refuse("--stop");
  if (options.speculation.on()) refuse("--spec and --draft");
  if (samplers.restricts()) refuse("--ban and --logit-bias");
}

}  // namespace quern::tool
