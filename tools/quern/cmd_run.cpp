// quern run: one prompt, one answer. Tokens on standard output as they come; the timing table and every
// notice on standard error.

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/strings.hpp"
#include "chat_prompt.hpp"
#include "command.hpp"
#include "engine/limits.hpp"
#include "engine/report.hpp"
#include "model_options.hpp"
#include "signals.hpp"
#include "terminal.hpp"
#include "text/text_stream.hpp"

namespace quern::tool {

namespace {

using Clock = std::chrono::steady_clock;

struct RunOptions {
  ModelOptions model;
  std::optional<std::string> prompt;
  std::string file, ids_file, system, output = "text";
  std::int64_t n_predict = -1, seed = -1;
  bool raw = false, chat = false, ignore_eos = false, no_timings = false, special = false;
  std::optional<double> temperature, top_p, min_p, repeat_penalty;
  std::optional<std::size_t> top_k;
};

void add_sampling_options(CLI::App& app, RunOptions& options) {
  const auto number = [&](const char* name, std::optional<double>& target, double low, double high, const char* help) {
    app.add_option_function<double>(name, [&target](const double& value) { target = value; }, help)
        ->check(finite_range(low, high));
  };
  number("--temp,--temperature", options.temperature, 0.0, 100.0, "temperature; 0 is greedy (the model's, else 0.8)");
  number("--top-p", options.top_p, 0.0, 1.0, "nucleus sampling (0.95); 1 is off");
  number("--min-p", options.min_p, 0.0, 1.0, "least probability beside the best token's (0.05); 0 is off");
  number("--repeat-penalty", options.repeat_penalty, 0.01, 100.0, "penalty of repeated tokens (1 = off)");
  app.add_option_function<std::size_t>("--top-k", [&](const std::size_t& value) { options.top_k = value; },
                                       "keep the k best tokens (40); 0 is off")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 24));
  app.add_option("-s,--seed", options.seed, "seed; the same seed gives the same answer (-1 = a new one, printed)")
      ->check(CLI::Range(std::int64_t{-1}, INT64_MAX));
}

// What the user says, else what the checkpoint's generation defaults say, else quern's defaults.
engine::SamplerOptions sampler_options(const contract::Generation& defaults, const RunOptions& options) {
  engine::SamplerOptions sampler;
  const bool greedy = defaults.sample.has_value() && !*defaults.sample && !options.temperature;
  sampler.temperature = greedy ? 0.0 : options.temperature.value_or(defaults.temperature.value_or(sampler.temperature));
  sampler.top_p = options.top_p.value_or(defaults.top_p.value_or(sampler.top_p));
  sampler.min_p = options.min_p.value_or(defaults.min_p.value_or(sampler.min_p));
  sampler.repeat_penalty = options.repeat_penalty.value_or(defaults.repetition_penalty.value_or(sampler.repeat_penalty));
  const auto default_top_k = defaults.top_k ? static_cast<std::size_t>(*defaults.top_k) : sampler.top_k;
  sampler.top_k = options.top_k.value_or(default_top_k);
  sampler.seed = options.seed >= 0 ? static_cast<std::uint64_t>(options.seed) : std::random_device{}();
  return sampler;
}

// The prompt as ids: from a file of ids, through the chat format, or raw.
std::vector<std::int32_t> prompt_ids(const LoadedModel& loaded, const RunOptions& options) {
  const contract::Contract& contract = loaded.model->contract;
  if (!options.ids_file.empty()) return read_ids_file(options.ids_file, contract.vocab_size);
  const text::Tokenizer& tokenizer = need_tokenizer(loaded);
  const std::string text = !options.file.empty() ? read_input(options.file)
                           : options.prompt ? *options.prompt : read_input("-");
  const bool known = has_chat_format(contract);
  if (options.chat && !known)
    base::reject(loaded.model->weights.where(), "the model has no chat format that this version can write");
  std::vector<std::int32_t> ids;
  if (!options.raw && known) {
    ids = chat_ids(contract, tokenizer, {options.system, text});
  } else {
    if (!options.raw && !contract.chat.jinja.empty())
      std::cerr << "quern: note: the model's chat template is not supported yet; completing the raw text\n";
    ids = tokenizer.encode(text);
  }
  if (ids.empty()) base::reject("prompt", "the prompt has no tokens");
  return ids;
}

const char* reason_name(engine::FinishReason reason) {
  switch (reason) {
    case engine::FinishReason::stop: return "stop";
    case engine::FinishReason::length: return "length";
    case engine::FinishReason::interrupted: return "interrupted";
  }
  return "";
}

// Collects the answer and prints it as it comes (text and ids; JSON waits for the end).
class AnswerPrinter {
 public:
  AnswerPrinter(const LoadedModel& loaded, const RunOptions& options) : loaded_(loaded), options_(options) {
    if (loaded.tokenizer) stream_.emplace(*loaded.tokenizer);
  }

  bool token(std::int32_t id) {
    ids_.push_back(id);
    if (options_.output == "ids") {
      std::cout << (ids_.size() == 1 ? "" : " ") << id << std::flush;
    } else if (options_.special || !loaded_.tokenizer->is_special(id)) {
      show(stream_->push(id));
    }
    return !interrupted();
  }

  void finish(engine::FinishReason reason, std::size_t prompt_tokens, const std::string& timings) {
    if (options_.output == "json") {
      if (stream_) show(stream_->finish());
      nlohmann::ordered_json json = {{"text", text_},
                                     {"ids", ids_},
                                     {"finish_reason", reason_name(reason)},
                                     {"prompt_tokens", prompt_tokens},
                                     {"completion_tokens", ids_.size()}};
      json["timings"] = nlohmann::ordered_json::parse(timings);
      std::cout << json.dump() << "\n";
      return;
    }
    if (options_.output == "text" && stream_) show(stream_->finish());
    write_model_text("\n");
  }

 private:
  void show(const std::string& piece) {
    text_ += piece;
    if (options_.output == "text") write_model_text(piece);
  }

  const LoadedModel& loaded_;
  const RunOptions& options_;
  std::optional<text::TextStream> stream_;
  std::string text_;
  std::vector<std::int32_t> ids_;
};

void add_run_options(CLI::App& app, RunOptions& options) {
  add_model_options(app, options.model);
  add_cache_options(app, options.model);
  CLI::Option* prompt = app.add_option_function<std::string>(
      "-p,--prompt", [&](const std::string& text) { options.prompt = text; }, "the prompt (default: standard input)");
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
  app.add_flag("--ignore-eos", options.ignore_eos, "go on after the end token");
  app.add_flag("--special", options.special, "print control tokens too");
  app.add_flag("--no-timings", options.no_timings, "no timing table");
  app.add_option("--output", options.output, "text, ids or json (text)")->check(CLI::IsMember({"text", "ids", "json"}));
  add_sampling_options(app, options);
  app.footer("examples:\n  quern run -m MODEL -p \"Why is the sky blue?\" --temp 0\n"
             "  quern run -m MODEL -no-cnv -p \"Once upon a time\" -n 100 -s 1\n"
             "  quern run -m MODEL -f prompt.txt --output json | jq -r .text");
}

engine::GenerateOptions generate_options(const LoadedModel& loaded, const RunOptions& options, std::size_t n_prompt) {
  const std::size_t context = context_length(loaded, options.model);
  const std::size_t room = context > n_prompt ? context - n_prompt : 0;
  engine::GenerateOptions generate;
  const std::optional<std::int64_t> usual = loaded.model->contract.generation.max_new_tokens;
  generate.max_new_tokens = options.n_predict >= 0 ? static_cast<std::size_t>(options.n_predict)
                            : usual ? std::min(room, static_cast<std::size_t>(*usual)) : room;
  generate.stop_ids = loaded.model->contract.tokens.eos;
  generate.ignore_eos = options.ignore_eos;
  generate.stop_requested = interrupted;
  return generate;
}

}  // namespace

int cmd_run(const std::vector<std::string>& arguments) {
  CLI::App app("Answers one prompt. The answer goes to standard output, everything else to standard error.", "quern run");
  RunOptions options;
  add_run_options(app, options);
  if (parse_arguments(app, arguments)) return 0;
  parse_cache_type(options.model.k_type, "-ctk");
  parse_cache_type(options.model.v_type, "-ctv");

  const LoadedModel loaded = load_model(options.model);
  if (options.output != "ids") need_tokenizer(loaded);
  const contract::Contract& contract = loaded.model->contract;
  const Clock::time_point tokenize_start = Clock::now();
  const std::vector<std::int32_t> ids = prompt_ids(loaded, options);
  const double tokenize_seconds = std::chrono::duration<double>(Clock::now() - tokenize_start).count();
  const engine::GenerateOptions generate = generate_options(loaded, options, ids.size());
  const engine::SamplerOptions sampling = sampler_options(contract.generation, options);
  if (options.seed < 0 && sampling.temperature > 0) std::cerr << "quern: seed " << sampling.seed << "\n";
  engine::Sampler sampler(sampling, contract.vocab_size);
  if (loaded.tokenizer) sampler.set_allowed(std::min(loaded.tokenizer->size(), contract.vocab_size));
  engine::Session session(*loaded.model, *loaded.pool,
                          session_options(loaded, options.model, ids.size() + generate.max_new_tokens));
  catch_signals();
  AnswerPrinter printer(loaded, options);
  const engine::FinishReason reason = session.generate(ids, sampler, generate, [&](std::int32_t id) { return printer.token(id); });

  engine::Timings timings = engine::collect_timings(*loaded.model, session);
  timings.load_seconds = loaded.load_seconds + loaded.tokenizer_seconds;
  timings.tokenize_seconds = tokenize_seconds;
  if (!options.no_timings && !interrupted()) timings.read_bandwidth = engine::measure_read_bandwidth(*loaded.pool);
  printer.finish(reason, ids.size(), engine::timings_json(timings));
  if (!options.no_timings && options.output != "json") std::cerr << "\n" << engine::timings_text(timings);
  return 0;
}

}  // namespace quern::tool
