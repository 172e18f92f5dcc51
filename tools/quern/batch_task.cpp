#include "batch_task.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "batch/item_error.hpp"
#include "text_limit.hpp"

namespace quern::tool {

namespace {

using batch::ItemError;
using batch::Request;

constexpr std::size_t kMostAnswers = 2048;  // of one line

[[noreturn]] void too_long(const base::Error& error) { throw ItemError("context_length_exceeded", error); }

void check_bytes(std::string_view text, std::size_t context) {
  try {
    check_text_bytes(text, "prompt", context);
  } catch (const base::Error& error) {
    too_long(error);
  }
}

bool has_system(const std::vector<chat::Message>& messages) {
  return std::any_of(messages.begin(), messages.end(),
                     [](const chat::Message& m) { return m.role == "system" || m.role == "developer"; });
}

jinja::Template::Variables variables_of(const std::string& kwargs_json) {
  if (kwargs_json.empty()) return {};
  jinja::Template::Variables variables;
  const jinja::Data kwargs = jinja::Data::parse(kwargs_json, "chat_template_kwargs", jinja::Trust::untrusted);
  for (const auto& [key, value] : kwargs.members) {
    if (key.text == "messages" || key.text == "tools" || key.text == "add_generation_prompt")
      throw ItemError("invalid_request", "chat_template_kwargs",
                      base::cat("\"", key.text, "\" is not a variable of the user"));
    variables.emplace_back(key.text, value);
  }
  return variables;
}

void check_ids(const std::vector<std::int32_t>& ids, std::size_t vocab_size, const char* where) {
  for (const std::int32_t id : ids)
    if (static_cast<std::size_t>(id) >= vocab_size)
      throw ItemError("invalid_request", where, base::cat("token id ", id, " is not in 0 to ", vocab_size - 1));
}

}  // namespace

TaskMaker::TaskMaker(const LoadedModel& loaded, const BatchOptions& options, const std::optional<grammar::Grammar>& form,
                     const std::tm& now)
    : loaded_(loaded),
      options_(options),
      context_(context_length(loaded, options.answer.model)),
      samplers_(loaded, options.answer.sampling, options.answer.special),
      forms_(loaded, form),
      answer_(answer_options(options.answer)),
      generation_(generation_request(options.answer)) {
  const RunOptions& answer = options.answer;
  if (has_chat_format(loaded, answer.chat_format)) {
    format_.emplace(make_chat_format(loaded, answer.chat_format, now));
    set_marks(answer_.text, format_->traits(), loaded);
  } else if (answer.chat || !answer.system.empty()) {
    base::reject(loaded.model->weights.where(), "the model has no chat template", {},
                 "one of --chat-template and --chat-template-file");
  }
  for (const std::int32_t id : answer.stops.ids)
    if (static_cast<std::size_t>(id) >= loaded.model->contract.vocab_size)
      base::usage_error("--stop-id", base::cat("token id ", id, " is not in 0 to ", loaded.model->contract.vocab_size - 1));
}

TaskMaker::Prepared TaskMaker::chat(const Request& request, std::vector<chat::Message> messages) const {
  if (!format_)
    throw ItemError("no_chat_template", "", "the model has no chat template: --chat-template gives it one");
  std::string_view system = request.system ? *request.system : std::string_view(options_.answer.system);
  if (!system.empty() && !has_system(messages))
    messages.insert(messages.begin(), chat::message("system", std::string(system)));
  std::size_t n_bytes = 0;
  for (const chat::Message& message : messages) n_bytes += message.content.text.size() + message.fields_json.size();
  if (n_bytes > most_text_bytes(context_))
    throw ItemError("context_length_exceeded", "messages",
                    base::cat("too long (got ", n_bytes, " bytes, expected at most ", most_text_bytes(context_),
                              " for a context of ", context_, " tokens)"));
  chat::RenderRequest render;
  render.tools_json = request.tools_json;
  render.add_generation_prompt = request.add_generation_prompt;
  render.continue_final = request.continue_final;
  render.variables = variables_of(request.template_kwargs_json);
  Prepared prepared;
  prepared.ids = format_->ids(messages, render);
  prepared.chat = true;
  return prepared;
}

TaskMaker::Prepared TaskMaker::raw(const batch::Prompt& prompt) const {
  Prepared prepared{prompt.ids, false, prompt.text};
  check_ids(prompt.ids, loaded_.model->contract.vocab_size, "prompt");
  if (!prompt.ids.empty()) return prepared;
  check_bytes(prompt.text, context_);
  prepared.ids = need_tokenizer(loaded_).encode(prompt.text);
  return prepared;
}

std::vector<TaskMaker::Prepared> TaskMaker::prepare(const Request& request) const {
  if (request.endpoint == batch::Endpoint::chat) return {chat(request, request.messages)};
  const bool as_chat = request.endpoint == batch::Endpoint::prompt && format_ && !options_.answer.raw;
  if (request.system && !as_chat)
    throw ItemError("no_chat_template", "system", "there is no chat format for a system message");
  std::vector<Prepared> prepared;
  for (const batch::Prompt& prompt : request.prompts) {
    if (as_chat) check_bytes(prompt.text, context_);
    prepared.push_back(as_chat ? chat(request, {chat::message("user", prompt.text)}) : raw(prompt));
  }
  return prepared;
}

engine::GenerationPlan TaskMaker::plan(const Request& request, const AnswerTask& task, const Prepared& prepared) const {
  engine::GenerationRequest generation = generation_;
  const batch::SamplingFields& fields = request.sampling;
  if (request.max_tokens) generation.max_new_tokens = request.max_tokens;
  if (request.min_tokens) generation.min_new_tokens = request.min_tokens;
  if (request.ignore_eos) generation.ignore_ends = true;
  if (fields.repeat_penalty && !generation.repetition_penalty) generation.repetition_penalty = 1;
  if (fields.temperature && *fields.temperature > 0) generation.sample = true;
  const contract::Contract& contract = loaded_.model->contract;
  engine::GenerationPlan out = engine::plan_generation(contract, generation, task.prompt.size(), context_);
  if (prepared.chat) end_as_chat(out.stop_ids, *answer_.text.marks, loaded_, generation.ignore_ends);
  if (loaded_.tokenizer) out.rules.allowed = std::min(loaded_.tokenizer->size(), contract.vocab_size);
  for (const auto* ids : {&options_.answer.stops.ids, &request.stop_ids}) {
    check_ids(*ids, contract.vocab_size, "stop_token_ids");
    out.stop_ids.insert(out.stop_ids.end(), ids->begin(), ids->end());
    out.beams.ends.insert(out.beams.ends.end(), ids->begin(), ids->end());
  }
  return out;
}

sampling::SamplerOptions TaskMaker::sampler_options(const Request& request, std::uint64_t seed) const {
  sampling::SamplerOptions options = samplers_.options();
  const batch::SamplingFields& fields = request.sampling;
  const auto set = [](auto& target, const auto& value) {
    if (value) target = *value;
  };
  set(options.temperature, fields.temperature);
  set(options.top_k, fields.top_k);
  set(options.top_p, fields.top_p);
  set(options.min_p, fields.min_p);
  set(options.typical_p, fields.typical_p);
  set(options.repeat_penalty, fields.repeat_penalty);
  set(options.presence_penalty, fields.presence_penalty);
  set(options.frequency_penalty, fields.frequency_penalty);
  for (const auto& [id, bias] : fields.logit_bias) {
    check_ids({id}, loaded_.model->contract.vocab_size, "logit_bias");
    options.logit_bias.emplace_back(id, bias);
  }
  options.seed = seed;
  return options;
}

void TaskMaker::check_search(const Request& request, const AnswerTask& task) const {
  if (task.plan.beams.n_beams < 2) return;
  const auto refuse = [&](const char* what) {
    throw ItemError("unsupported_field", what, base::cat("works token by token, not in a search with ",
                                                         task.plan.beams.n_beams, " beams: add --num-beams 1"));
  };
  if (request.n > 1) refuse("n");
  if (request.logprobs) refuse("logprobs");
  if (!task.answer.stops.empty()) refuse("stop");
  if (forms_.has_form(request)) refuse("a form");
  if (samplers_.restricts() || !request.sampling.logit_bias.empty()) refuse("logit_bias");
}

AnswerTask TaskMaker::make_one(const Request& request, const Prepared& prepared, std::uint64_t seed) {
  const contract::Contract& contract = loaded_.model->contract;
  AnswerTask task;
  task.prompt = prepared.ids;
  if (task.prompt.empty()) throw ItemError("invalid_request", "prompt", "has no tokens");
  if (contract.kind == contract::ModelKind::encoder_decoder) {
    task.source = std::move(task.prompt);
    task.prompt = engine::decoder_prompt(contract);
  }
  if (const std::size_t n = task.n_prompt(); n > context_)
    throw ItemError("context_length_exceeded", "prompt", base::cat("prompt has ", n, " tokens, context is ", context_));
  task.plan = plan(request, task, prepared);
  if (task.plan.max_new_tokens == 0)
    throw ItemError("context_length_exceeded", "prompt", "leaves no room for an answer");
  task.answer = answer_;
  if (prepared.chat) set_prompt(task.answer.text, prepared.ids, loaded_);
  else task.answer.text.marks = nullptr;
  task.answer.stops.insert(task.answer.stops.end(), request.stops.begin(), request.stops.end());
  task.answer.scores = request.logprobs;
  task.answer.top_scores = request.top_logprobs;
  if (request.echo) task.echo = prepared.text;
  check_search(request, task);
  task.sampler = samplers_.make(sampler_options(request, seed),
                                sampling::TokenRules(task.plan.rules, contract.vocab_size), task.plan.rules.allowed);
  if (!task.sampler->greedy() && task.plan.beams.n_beams < 2) task.seed = seed;
  if (forms_.has_form(request)) {
    if (request.ignore_eos || generation_.ignore_ends)
      throw ItemError("unsupported_field", "ignore_eos", "not with a form, which says where the answer ends");
    task.form = forms_.matcher(request, task.plan.stop_ids);
    task.sampler->set_constraint(task.form.get());
  }
  return task;
}

std::vector<AnswerTask> TaskMaker::make(const Request& request, std::uint64_t key) {
  if (!loaded_.model->decoder || loaded_.model->contract.head.kind != contract::HeadKind::lm)
    throw ItemError("unsupported_endpoint", "model", "has no decoder with a language head: it cannot generate");
  try {
    const std::vector<Prepared> prompts = prepare(request);
    if (prompts.size() * request.n > kMostAnswers)
      throw ItemError("invalid_request", "n", base::cat("more than ", kMostAnswers, " answers to one line"));
    std::vector<AnswerTask> tasks;
    for (const Prepared& prompt : prompts)
      for (std::size_t i = 0; i < request.n; ++i) {
        const auto base_seed = static_cast<std::uint64_t>(options_.answer.sampling.seed);
        tasks.push_back(make_one(request, prompt, batch::seed_of(request.sampling.seed, base_seed, key, tasks.size())));
      }
    return tasks;
  } catch (const ItemError&) {
    throw;
  } catch (const base::Error& error) {
    if (error.code() == base::ExitCode::environment || error.code() == base::ExitCode::internal) throw;
    throw ItemError("invalid_request", error);
  }
}

}  // namespace quern::tool
