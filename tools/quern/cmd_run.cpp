// quern run: one prompt, one answer (of a search: the best ones). Tokens on standard output as they come; the
// timing table and every notice on standard error.

#include <algorithm>
#include <chrono>
#include <iostream>

#include "answer_printer.hpp"
#include "arguments.hpp"
#include "base/error.hpp"
#include "chat_prompt.hpp"
#include "command.hpp"
#include "engine/limits.hpp"
#include "engine/report.hpp"
#include "run_options.hpp"
#include "signals.hpp"
#include "text_limit.hpp"

namespace quern::tool {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The prompt as ids: from a file of ids, through the chat format, or raw.
std::vector<std::int32_t> prompt_ids(const LoadedModel& loaded, const RunOptions& options) {
  const contract::Contract& contract = loaded.model->contract;
  if (!options.ids_file.empty()) {
    const bool own = contract.encoder && contract.encoder->embedding;
    return read_ids_file(options.ids_file, own ? contract.encoder->embedding->vocab_size : contract.vocab_size);
  }
  const text::Tokenizer& tokenizer = need_tokenizer(loaded);
  const std::string text = !options.file.empty() ? read_input(options.file)
                           : options.prompt ? *options.prompt : read_input("-");
  check_text_bytes(text, "prompt", context_length(loaded, options.model));
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

// What is to be generated: the decoder's first ids, and the source of an encoder-decoder.
struct Task {
  std::vector<std::int32_t> source, prompt;
  engine::GenerationPlan plan;
};

Task make_task(const LoadedModel& loaded, const RunOptions& options) {
  const contract::Contract& contract = loaded.model->contract;
  Task task;
  task.prompt = prompt_ids(loaded, options);
  if (contract.kind == contract::ModelKind::encoder_decoder) {
    task.source = std::move(task.prompt);
    task.prompt = engine::decoder_prompt(contract);
  }
  task.plan = engine::plan_generation(contract, generation_request(options), task.prompt.size(),
                                      context_length(loaded, options.model));
  if (loaded.tokenizer) task.plan.rules.allowed = std::min(loaded.tokenizer->size(), contract.vocab_size);
  return task;
}

engine::FinishReason generate(engine::Session& session, const Task& task, const sampling::SamplerOptions& sampling,
                              const LoadedModel& loaded, AnswerPrinter& printer) {
  const std::size_t vocab_size = loaded.model->contract.vocab_size;
  if (!task.source.empty()) session.encode(task.source);
  sampling::TokenRules rules(task.plan.rules, vocab_size);
  if (task.plan.beams.n_beams > 1) {
    engine::BeamOptions beams = task.plan.beams;
    beams.stop_requested = interrupted;
    const engine::Session::SearchResult found = session.search(task.prompt, rules, beams);
    printer.answers(found.hypotheses, beams.ends);
    return found.reason;
  }
  sampling::Sampler sampler(sampling, vocab_size);
  if (task.plan.rules.allowed != 0) sampler.set_allowed(task.plan.rules.allowed);
  if (rules.active()) sampler.set_rules(std::move(rules));
  engine::GenerateOptions options;
  options.max_new_tokens = task.plan.max_new_tokens;
  options.stop_ids = task.plan.stop_ids;
  options.stop_requested = interrupted;
  return session.generate(task.prompt, sampler, options, [&](std::int32_t id) { return printer.token(id); });
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
  if (options.output == "text") need_tokenizer(loaded);
  const contract::Contract& contract = loaded.model->contract;
  const Clock::time_point tokenize_start = Clock::now();
  const Task task = make_task(loaded, options);
  const double tokenize_seconds = seconds_since(tokenize_start);
  const sampling::SamplerOptions sampling = sampler_options(contract, options);
  const bool searches = task.plan.beams.n_beams > 1;
  const std::string search = engine::search_description(task.plan, sampling.temperature == 0);
  if (searches || contract.kind == contract::ModelKind::encoder_decoder) std::cerr << "quern: " << search << "\n";
  else if (options.seed < 0 && sampling.temperature > 0) std::cerr << "quern: seed " << sampling.seed << "\n";

  engine::SessionOptions session_settings =
      session_options(loaded, options.model, task.prompt.size() + task.plan.max_new_tokens);
  session_settings.source_length = task.source.size();
  if (searches) {  // every beam has a sequence of the cache, no longer than it can get
    session_settings.n_beams = task.plan.beams.n_beams;
    session_settings.cache.max_tokens =
        std::min(session_settings.cache.max_tokens, task.prompt.size() + task.plan.max_new_tokens);
  }
  engine::Session session(*loaded.model, *loaded.pool, session_settings);
  catch_signals();
  AnswerPrinter printer(loaded, options);
  const engine::FinishReason reason = generate(session, task, sampling, loaded, printer);

  engine::Timings timings = engine::collect_timings(*loaded.model, session);
  timings.load_seconds = loaded.load_seconds + loaded.tokenizer_seconds;
  timings.tokenize_seconds = tokenize_seconds;
  if (!options.no_timings && !interrupted()) timings.read_bandwidth = engine::measure_read_bandwidth(*loaded.pool);
  const std::size_t n_prompt = task.source.empty() ? task.prompt.size() : task.source.size();
  printer.finish({reason, n_prompt, search, engine::timings_json(timings)});
  if (!options.no_timings && options.output != "json") std::cerr << "\n" << engine::timings_text(timings);
  return 0;
}

}  // namespace quern::tool
