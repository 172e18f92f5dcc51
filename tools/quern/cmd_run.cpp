// quern run: prompts and their answers (of a search: the best ones). Tokens on standard output as they come; the
// timing table and every notice on standard error. All prompts are read and checked before the first answer.

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>
#include <span>

#include "answer_printer.hpp"
#include "arguments.hpp"
#include "base/error.hpp"
#include "chat_options.hpp"
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

// The chat format that prompts go through, made once for all; none: they are completed as they are.
std::optional<chat::Format> prompt_format(const LoadedModel& loaded, const RunOptions& options) {
  if (options.raw || !options.ids_file.empty()) return std::nullopt;
  if (has_chat_format(loaded, options.chat_format)) return make_chat_format(loaded, options.chat_format);
  if (options.chat)
    base::reject(loaded.model->weights.where(), "the model has no chat template", {},
                 "one of --chat-template and --chat-template-file");
  return std::nullopt;
}

// The prompt as ids: from a file of ids, through the chat format, or raw.
std::vector<std::int32_t> prompt_ids(const LoadedModel& loaded, const RunOptions& options, const chat::Format* format,
                                     const Prompt& prompt) {
  const contract::Contract& contract = loaded.model->contract;
  if (!options.ids_file.empty()) {
    const bool own = contract.encoder && contract.encoder->embedding;
    return read_ids_file(options.ids_file, own ? contract.encoder->embedding->vocab_size : contract.vocab_size);
  }
  const text::Tokenizer& tokenizer = need_tokenizer(loaded);
  check_text_bytes(prompt.text, "prompt", context_length(loaded, options.model));
  const std::string& system = prompt.system ? *prompt.system : options.system;
  if (!system.empty() && format == nullptr)
    base::reject(prompt.system ? prompt.name : "--system",
                 options.raw ? "a raw prompt has no place for a system message"
                             : "the model has no chat template for a system message",
                 {}, options.raw ? "a chat, without -no-cnv" : "one of --chat-template and --chat-template-file");
  std::vector<std::int32_t> ids;
  if (format != nullptr) {
    std::vector<chat::Message> messages;
    if (!system.empty()) messages.push_back(chat::message("system", system));
    messages.push_back(chat::message("user", prompt.text));
    ids = format->ids(messages);
  } else {
    ids = tokenizer.encode(prompt.text);
  }
  if (ids.empty()) base::reject("prompt", "the prompt has no tokens");
  return ids;
}

// What is to be generated: the decoder's first ids, and the source of an encoder-decoder.
struct Task {
  std::string name, echo;
  std::vector<std::int32_t> source, prompt;
  engine::GenerationPlan plan;
  AnswerOptions answer;
  std::size_t n_prompt() const { return source.empty() ? prompt.size() : source.size(); }
};

Task make_task(const LoadedModel& loaded, const RunOptions& options, const chat::Format* format, const Prompt& prompt) {
  const contract::Contract& contract = loaded.model->contract;
  Task task;
  task.name = prompt.name;
  task.answer = answer_options(options);
  task.prompt = prompt_ids(loaded, options, format, prompt);
  if (options.echo) task.echo = text_of_ids(loaded, task.prompt, {options.special});
  if (contract.kind == contract::ModelKind::encoder_decoder) {
    task.source = std::move(task.prompt);
    task.prompt = engine::decoder_prompt(contract);
  }
  const std::size_t context = context_length(loaded, options.model);
  if (task.prompt.size() > context)
    base::reject(prompt.name, base::cat("prompt has ", task.prompt.size(), " tokens, context is ", context));
  task.plan = engine::plan_generation(contract, generation_request(options), task.prompt.size(), context);
  if (format != nullptr) {
    set_marks(task.answer.text, format->traits(), loaded);
    set_prompt(task.answer.text, task.prompt, loaded);
    end_as_chat(task.plan.stop_ids, *task.answer.text.marks, loaded, options.generation.ignore_ends);
  }
  if (loaded.tokenizer) task.plan.rules.allowed = std::min(loaded.tokenizer->size(), contract.vocab_size);
  for (const std::int32_t id : options.stops.ids) {
    if (static_cast<std::size_t>(id) >= contract.vocab_size)
      base::usage_error("--stop-id", base::cat("token id ", id, " is not in 0 to ", contract.vocab_size - 1));
    task.plan.stop_ids.push_back(id);
    task.plan.beams.ends.push_back(id);
  }
  return task;
}

// The form that the options ask for; usage errors where it cannot be held.
std::optional<AnswerForm> make_form(const std::optional<grammar::Grammar>& grammar, const LoadedModel& loaded,
                                    const Task& task, const RunOptions& options) {
  if (!grammar) return std::nullopt;
  const char* const where = "--grammar, --json-schema, --regex";
  if (task.plan.beams.n_beams > 1) base::usage_error(where, "not with beam search; use --num-beams 1");
  if (options.generation.ignore_ends) base::usage_error(where, "not with --ignore-eos: a form says where the answer ends");
  return std::make_optional<AnswerForm>(*grammar, loaded, task.plan.stop_ids);
}

std::vector<Task> make_tasks(const LoadedModel& loaded, const RunOptions& options) {
  const std::optional<chat::Format> format = prompt_format(loaded, options);
  std::vector<Task> tasks;
  for (const Prompt& prompt : read_prompts(options.prompts))
    tasks.push_back(make_task(loaded, options, format ? &*format : nullptr, prompt));
  return tasks;
}

// Position tables follow the declared length of a request: each prompt then needs a session of its own to be
// answered as if it were the only one.
bool depends_on_length(const contract::Contract& contract) {
  return std::any_of(contract.ropes.begin(), contract.ropes.end(),
                     [](const auto& rope) { return rope.second.switch_rule.has_value(); });
}

// The longest of all tasks decide what the session must hold.
engine::SessionOptions session_for(const LoadedModel& loaded, const RunOptions& options, std::span<const Task> tasks) {
  std::size_t total = 0, source = 0, n_beams = 1;
  for (const Task& task : tasks) {
    total = std::max(total, task.prompt.size() + task.plan.max_new_tokens);
    source = std::max(source, task.source.size());
    n_beams = std::max(n_beams, task.plan.beams.n_beams);
  }
  engine::SessionOptions session = session_options(loaded, options.model, total);
  session.source_length = source;
  if (n_beams > 1) {  // every beam has a sequence of the cache, no longer than it can get
    session.n_beams = n_beams;
    session.cache.max_tokens = std::min(session.cache.max_tokens, total);
  }
  return session;
}

// Model, session and samplers of one call of the command.
struct Run {
  const LoadedModel& loaded;
  const RunOptions& options;
  const SamplerMaker& samplers;
  AnswerPrinter& printer;
  PromptCache& cache;
  sampling::Constraint* constraint = nullptr;  // of a grammar: what may come next
  engine::Speculator* speculator = nullptr;
};

std::vector<Answer> search(engine::Session& session, const Run& run, const Task& task) {
  sampling::TokenRules rules(task.plan.rules, run.loaded.model->contract.vocab_size);
  engine::BeamOptions beams = task.plan.beams;
  beams.stop_requested = interrupted;
  const engine::Session::SearchResult found = session.search(task.prompt, rules, beams);
  std::vector<Answer> answers;
  for (const engine::Hypothesis& hypothesis : found.hypotheses) {
    Answer answer;
    answer.ids = hypothesis.ids;
    answer.reason = found.reason;
    answer.score = hypothesis.score;
    if (!answer.ids.empty() && std::find(beams.ends.begin(), beams.ends.end(), answer.ids.back()) != beams.ends.end()) {
      answer.stop = StopFound{answer.ids.back(), text_of_ids(run.loaded, {&answer.ids.back(), 1}, {true})};
      answer.ids.pop_back();
    }
    answer.text = text_of_ids(run.loaded, answer.ids, task.answer.text);
    answers.push_back(std::move(answer));
  }
  return answers;
}

Answer generate(engine::Session& session, const Run& run, const Task& task) {
  const std::size_t vocab_size = run.loaded.model->contract.vocab_size;
  const auto sampler =
      run.samplers.make(sampling::TokenRules(task.plan.rules, vocab_size), task.plan.rules.allowed);
  sampler->set_constraint(run.constraint);
  AnswerBuilder builder(run.loaded, task.answer, task.plan.stop_ids,
                        [&](const std::string& piece) { run.printer.show(piece); });
  engine::GenerateOptions options;
  options.max_new_tokens = task.plan.max_new_tokens;
  options.stop_requested = interrupted;
  options.speculator = run.speculator;
  const auto on_token = [&](std::int32_t id) {
    run.cache.at_token();
    const bool goes_on = builder.token(id, session.logits());
    if (builder.took_last()) run.printer.id(id);
    return goes_on && !interrupted();
  };
  const engine::FinishReason reason = session.generate(task.prompt, *sampler, options, on_token);
  run.cache.after_answer();
  return builder.finish(reason);
}

// The n-th sample of a prompt: as `-s SEED+n` gives it alone.
Answer sample(engine::Session& session, const Run& run, const Task& task, std::size_t n) {
  if (n == 0) return generate(session, run, task);
  SamplingOptions options = run.options.sampling;
  options.seed = static_cast<std::int64_t>((run.samplers.options().seed + n) & static_cast<std::uint64_t>(INT64_MAX));
  const SamplerMaker samplers(run.loaded, options, run.options.special);
  run.printer.next();
  return generate(session, {run.loaded, run.options, samplers, run.printer, run.cache, run.constraint}, task);
}

void add_times(engine::PhaseTimes& sum, const engine::PhaseTimes& one) {
  sum.encode_seconds += one.encode_seconds;
  sum.encode_tokens += one.encode_tokens;
  sum.prefill_seconds += one.prefill_seconds;
  sum.prefill_tokens += one.prefill_tokens;
  sum.reused_tokens += one.reused_tokens;
  sum.rebuilt_tokens += one.rebuilt_tokens;
  sum.decode_seconds += one.decode_seconds;
  sum.decode_tokens += one.decode_tokens;
  sum.decode_steps += one.decode_steps;
  sum.speculation.add(one.speculation);
  sum.sampling_seconds += one.sampling_seconds;
  sum.token_seconds.insert(sum.token_seconds.end(), one.token_seconds.begin(), one.token_seconds.end());
}

// Answers one prompt and prints it; its times are added to `sum`.
void answer(engine::Session& session, const Run& run, const Task& task, std::size_t index, engine::Timings& sum) {
  const bool searches = task.plan.beams.n_beams > 1;
  const bool greedy = run.samplers.greedy();
  if (!task.source.empty()) session.encode(task.source);
  run.printer.begin(task.name, task.echo);
  std::vector<Answer> answers;
  if (searches) answers = search(session, run, task);
  for (std::size_t n = 0; !searches && n < task.plan.beams.n_return && (n == 0 || !interrupted()); ++n)
    answers.push_back(sample(session, run, task, n));
  engine::Timings timings = engine::collect_timings(*run.loaded.model, session);  // before 256 MiB are read below
  if (run.options.json() && !run.options.no_timings && sum.read_bandwidth == 0 && !interrupted())
    sum.read_bandwidth = engine::measure_read_bandwidth(*run.loaded.pool);
  timings.load_seconds = sum.load_seconds;
  timings.tokenize_seconds = sum.tokenize_seconds;
  timings.read_bandwidth = sum.read_bandwidth;
  run.printer.end(answers, searches,
                  {index, task.n_prompt(), run.samplers.options().seed, greedy,
                   engine::search_description(task.plan, greedy), engine::timings_json(timings)});
  engine::PhaseTimes phases = sum.phases;
  add_times(phases, timings.phases);
  sum = timings;
  sum.phases = std::move(phases);
}

void announce(const Run& run, const Task& task) {
  const bool searches = task.plan.beams.n_beams > 1;
  const bool greedy = run.samplers.greedy();
  if (searches || run.loaded.model->contract.kind == contract::ModelKind::encoder_decoder)
    std::cerr << "quern: " << engine::search_description(task.plan, greedy) << "\n";
  else if (run.options.sampling.seed < 0 && !greedy)
    std::cerr << "quern: seed " << run.samplers.options().seed << "\n";
}

}  // namespace

int cmd_run(const std::vector<std::string>& arguments) {
  CLI::App app("Answers prompts. The answers go to standard output, everything else to standard error.", "quern run");
  RunOptions options;
  add_run_options(app, options);
  if (parse_arguments(app, arguments)) return 0;
  parse_cache_type(options.model.k_type, "-ctk");
  parse_cache_type(options.model.v_type, "-ctv");
  settle_run_options(options);

  const std::optional<grammar::Grammar> grammar = read_grammar(options.grammar);
  const LoadedModel loaded = load_model(options.model);
  note_long_context(options.model.context, loaded.model->contract);
  if (options.output == "text") need_tokenizer(loaded);
  const SamplerMaker samplers(loaded, options.sampling, options.special);
  const Clock::time_point tokenize_start = Clock::now();
  const std::vector<Task> tasks = make_tasks(loaded, options);
  engine::Timings timings;
  timings.tokenize_seconds = seconds_since(tokenize_start);
  timings.load_seconds = loaded.load_seconds + loaded.tokenizer_seconds;
  if (!options.prompt_cache.path.empty() && tasks.size() > 1)
    base::usage_error("--prompt-cache", "holds one prompt; there are several");
  const bool own = depends_on_length(loaded.model->contract);
  const std::size_t n_beams = tasks.front().plan.beams.n_beams;
  check_search(options, n_beams, samplers);
  if (n_beams == 1 && options.generation.n_return > 1 && samplers.greedy())
    base::usage_error("--num-return-sequences", "the best tokens make one answer: sample (--temp) or search (--num-beams)");
  const std::optional<AnswerForm> form = make_form(grammar, loaded, tasks.front(), options);
  const std::unique_ptr<grammar::Matcher> matcher = form ? form->matcher() : nullptr;

  engine::SessionOptions shape = session_for(loaded, options, std::span(tasks).first(own ? 1 : tasks.size()));
  Speculation speculation(options.speculation, options.model, loaded, shape);
  shape.max_draft = speculation.max_draft();
  std::optional<engine::Session> session;
  session.emplace(*loaded.model, *loaded.pool, shape);
  catch_signals();
  AnswerPrinter printer(loaded, options);
  PromptCache cache(options.prompt_cache, *session);
  const Run run{loaded, options, samplers, printer, cache, matcher.get(), speculation.speculator()};
  announce(run, tasks.front());
  for (std::size_t i = 0; i < tasks.size() && !interrupted(); ++i) {
    if (own && i > 0) {
      shape = session_for(loaded, options, {&tasks[i], 1});
      shape.max_draft = speculation.max_draft();
      session.emplace(*loaded.model, *loaded.pool, shape);
    }
    answer(*session, run, tasks[i], i, timings);
  }
  printer.finish();
  if (!options.no_timings && !options.json()) {
    if (!interrupted()) timings.read_bandwidth = engine::measure_read_bandwidth(*loaded.pool);
    std::cerr << "\n" << engine::timings_text(timings);
  }
  return 0;
}

}  // namespace quern::tool
