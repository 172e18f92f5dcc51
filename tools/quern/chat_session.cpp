#include "chat_session.hpp"

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "chat_tty.hpp"
#include "engine/generation_plan.hpp"
#include "escapes.hpp"
#include "terminal.hpp"
#include "terminal/completion.hpp"
#include "text_limit.hpp"
#include "text/stop_strings.hpp"
#include "text/text_stream.hpp"

namespace quern::tool {

namespace {

// An answer without a limit of its own ends after so many contexts, where the context never ends it.
constexpr std::size_t kMostContexts = 4;

// Layers with a window keep so many tokens behind it, so that an answer taken back or a message edited that
// far up costs no more prefill than in other models.
constexpr std::size_t kRollback = 4096;

std::string speed(std::size_t n, double seconds) {
  if (seconds <= 0) return {};
  std::ostringstream text;
  text << ", " << std::fixed << std::setprecision(1) << static_cast<double>(n) / seconds << " t/s";
  return text.str();
}

}  // namespace

void TurnCounts::add(const TurnCounts& other) {
  reused += other.reused;
  prefilled += other.prefilled;
  rebuilt += other.rebuilt;
  decoded += other.decoded;
  thought += other.thought;
  drafted += other.drafted;
  accepted += other.accepted;
  prefill_seconds += other.prefill_seconds;
  decode_seconds += other.decode_seconds;
}

std::string counts_text(const TurnCounts& c) {
  return base::cat("prefill ", c.prefilled, " tokens (", c.reused, " reused",
                   c.rebuilt == 0 ? "" : base::cat(", ", c.rebuilt, " again"), ")",
                   speed(c.prefilled, c.prefill_seconds), "; decode ", c.decoded, " tokens",
                   c.thought == 0 ? "" : base::cat(" (", c.thought, " of thoughts)"),
                   speed(c.decoded, c.decode_seconds),
                   c.drafted == 0 ? "" : base::cat("; ", c.accepted, " of ", c.drafted, " guesses right"));
}

// An answer that is coming about.
struct ChatSession::Answer {
  Answer(const text::Tokenizer& tokenizer, bool opened, const DisplayOptions& options,
         const std::vector<std::string>& stop_texts)
      : stream(tokenizer), thoughts(options.marks, opened), display(options), progress(options.cursor) {
    std::vector<std::string> texts;
    for (const std::string& text : stop_texts) texts.push_back(unescaped(text));
    if (!texts.empty()) stops.emplace(std::move(texts));
  }

  // Shown and kept, but for a stop and what follows it.
  void add(const chat::AnswerPiece& piece) {
    if (piece.thought) {
      display.show(piece);
      reasoning += piece.text;
    } else {
      add_answer(stops ? stops->push(piece.text) : piece.text);
    }
  }
  void add_answer(const std::string& text) {
    display.show({false, text});
    content += text;
  }
  bool stopped() const { return stops && stops->found(); }
  bool over() const { return stopped() || thoughts.over(); }

  std::optional<text::TextStream> stream;
  chat::ThoughtStream thoughts;
  std::optional<text::StopStrings> stops;
  AnswerDisplay display;
  PrefillProgress progress;
  std::vector<std::int32_t> ids;  // prompt and answer
  std::size_t n_answer = 0;       // of them the answer's
  std::string content, reasoning;
  std::size_t n_new = 0;  // tokens of the model's own
  bool budget_used = false;
  TurnCounts counts;
};

ChatSession::ChatSession(const LoadedModel& loaded, const ChatCommandOptions& options, SettingsBook settings)
    : loaded_(loaded),
      renderer_(loaded, options.chat_format),
      settings_(std::move(settings)),
      context_(context_length(loaded, options.model)),
      autosave_path_(terminal::expand_home(options.session)),
      color_(wants_color(options.color)),
      cursor_(!options.simple_io && terminal_has_cursor()),
      fit_(options.overflow, context_) {
  if (!autosave_path_.empty()) lock_.emplace(autosave_path_);
  if (options.overflow.keep != 0) keep_ = options.overflow.keep;
  engine::SessionOptions session = session_options(loaded, options.model, 0);
  session.follow_length = true;
  session.cache.rollback = std::min(context_, kRollback);
  speculation_ = std::make_unique<Speculation>(options.speculation, options.model, loaded, session);
  session.max_draft = speculation_->max_draft();
  session_ = std::make_unique<engine::Session>(*loaded.model, *loaded.pool, session);
}

chat::Render ChatSession::render() const {
  return [this](const std::vector<chat::Message>& messages) {
    return renderer_.render(messages, settings_.settings().thinking);
  };
}

std::vector<std::int32_t> ChatSession::ids() const {
  return render()(conversation_.messages());
}

// The same seed gives the same answer to the same message of a chat, however it was come to.
std::int64_t ChatSession::turn_seed() const {
  std::uint64_t n_answers = 0;
  for (const chat::Message& message : conversation_.messages()) n_answers += message.role == "assistant" ? 1 : 0;
  const auto seed = static_cast<std::uint64_t>(settings_.settings().sampling.seed);
  return static_cast<std::int64_t>((seed + n_answers * 0x9E3779B97F4A7C15 + attempt_ * 0xD1B54A32D192ED03) &
                                   static_cast<std::uint64_t>(INT64_MAX));
}

sampling::TokenRuleOptions ChatSession::rules(std::size_t n_prompt) {
  engine::GenerationRequest request;
  request.n_beams = 1;
  if (settings_.settings().sampling.repeat_penalty) request.repetition_penalty = 1;
  return engine::plan_generation(loaded_.model->contract, request, n_prompt, context_).rules;
}

TurnEnd ChatSession::answer() {
  for (const chat::Message& message : conversation_.messages())
    check_text_bytes(message.content.text, "the message", context_);
  const ChatSettings& settings = settings_.settings();
  const std::size_t room = settings.n_predict > 0 ? static_cast<std::size_t>(settings.n_predict) : 256;
  if (fit_.options().policy == engine::OverflowPolicy::shift) {
    std::size_t keep = keep_.value_or(0);
    if (!keep_ && conversation_.system() != nullptr) keep = render()({*conversation_.system()}).size();
    fit_.set_keep(std::min(keep, context_ / 4));
  }
  chat::FitResult fit = fit_.fit(conversation_.messages(), std::min(room, context_ / 4), render());
  if (fit.report) notice(engine::overflow_text(*fit.report), color_);

  Answer answer(*loaded_.tokenizer, renderer_.opens_thought(fit.ids),
                {color_, cursor_, settings.hide_thinking, renderer_.marks()}, settings.stops);
  answer.ids = std::move(fit.ids);
  last_ = {};
  engine::FinishReason reason = generate(answer);
  show(answer, answer.stream->finish());
  for (const chat::AnswerPiece& piece : answer.thoughts.finish()) answer.add(piece);
  if (answer.stops && !answer.stopped()) answer.add_answer(answer.stops->finish());
  if (answer.over()) reason = engine::FinishReason::stop;
  answer.progress.erase();
  answer.display.finish();
  last_ = answer.counts;
  total_.add(last_);
  take_interrupt();
  if (answer.n_new == 0 && reason == engine::FinishReason::interrupted) return TurnEnd::nothing;
  chat::Message message = chat::message("assistant", answer.content);
  if (!answer.reasoning.empty()) message.reasoning_content = jinja::marked(answer.reasoning, jinja::Trust::untrusted);
  conversation_.add(std::move(message));
  explain_end(answer, reason);
  return reason == engine::FinishReason::interrupted ? TurnEnd::interrupted : TurnEnd::answered;
}

void ChatSession::explain_end(const Answer& answer, engine::FinishReason reason) const {
  if (settings_.settings().show_timings) notice(base::cat("[ ", counts_text(last_), " ]"), color_);
  if (reason == engine::FinishReason::interrupted) notice("(stopped; what is there is kept)", color_);
  if (reason != engine::FinishReason::length) return;
  const auto limit = settings_.settings().n_predict;
  if (limit >= 0 && answer.n_new >= static_cast<std::size_t>(limit))
    notice(base::cat("(cut after ", limit, " tokens: -n)"), color_);
  else
    notice(base::cat("(cut: the context of ", context_,
                     " tokens is full; --on-overflow truncate, shift or sinks goes on)"),
           color_);
}

engine::GenerateOptions ChatSession::generate_options(Answer& answer, std::size_t max_new_tokens) {
  engine::GenerateOptions options;
  options.max_new_tokens = max_new_tokens;
  options.stop_ids = renderer_.stop_ids();
  options.stop_requested = [] { return interrupt_pending() || end_signal() != 0; };
  options.speculator = speculation_->speculator();
  options.on_prefill = [&answer](std::size_t done, std::size_t total) { answer.progress.update(done, total); };
  options.on_rebuild = [this, &answer](const engine::LengthChange& change) {
    answer.progress.erase();
    notice(base::cat("the chat is longer than ", change.from, " tokens: the model's position scaling changes, ",
                     change.n_tokens, " tokens are computed again for ", change.to),
           color_);
  };
  if (fit_.options().policy != engine::OverflowPolicy::error)
    options.on_full = [this, &answer](std::span<const std::int32_t> text) { return make_room(answer, text); };
  return options;
}

std::vector<std::int32_t> ChatSession::make_room(Answer& answer, std::span<const std::int32_t> text) {
  chat::FitResult fit =
      fit_.fit_answer(conversation_.messages(), text, std::min(answer.n_answer, text.size()), render());
  if (fit.report) {
    const bool on_terminal = stdout_is_terminal();
    if (on_terminal) write_model_text("\n");
    notice(engine::overflow_text(*fit.report), color_);
  }
  if (!fit.ids.empty()) answer.ids = fit.ids;
  return fit.ids;
}

engine::FinishReason ChatSession::generate(Answer& answer) {
  const ChatSettings& settings = settings_.settings();
  SamplingOptions sampling = settings.sampling;
  sampling.seed = turn_seed();
  const std::size_t vocab_size = loaded_.model->contract.vocab_size;
  const auto sampler = SamplerMaker(loaded_, sampling, false)
                           .make(sampling::TokenRules(rules(answer.ids.size()), vocab_size),
                                 std::min(loaded_.tokenizer->size(), vocab_size));
  const std::size_t most =
      settings.n_predict >= 0 ? static_cast<std::size_t>(settings.n_predict) : kMostContexts * context_;
  if (settings.reasoning_budget == 0 && answer.thoughts.thinking()) close_thought(answer);
  while (true) {
    answer.budget_used = false;
    const std::vector<std::int32_t> ids = answer.ids;
    const engine::FinishReason reason =
        session_->generate(ids, *sampler, generate_options(answer, most - std::min(most, answer.n_new)),
                           [&](std::int32_t id) { return take(answer, id); });
    count(answer);
    if (!answer.budget_used) return reason;
    // The end of the thought is put into the text as if the model had written it.
    close_thought(answer);
    if (answer.n_new >= most) return engine::FinishReason::length;
  }
}

void ChatSession::count(Answer& answer) {
  const engine::PhaseTimes& times = session_->times();
  TurnCounts& c = answer.counts;
  if (c.reused == 0 && c.prefilled == 0) c.reused = times.reused_tokens;
  c.prefilled += times.prefill_tokens - std::min(times.prefill_tokens, times.rebuilt_tokens);
  c.rebuilt += times.rebuilt_tokens;
  c.decoded = answer.n_new;
  c.drafted += times.speculation.drafted;
  c.accepted += times.speculation.accepted;
  c.prefill_seconds += times.prefill_seconds;
  c.decode_seconds += times.decode_seconds + times.sampling_seconds;
}

// One token of the answer; false to stop.
bool ChatSession::take(Answer& answer, std::int32_t id) {
  answer.progress.erase();
  answer.ids.push_back(id);
  ++answer.n_answer;
  ++answer.n_new;
  // Control tokens are no text, unless a mark of thoughts is made of them.
  const text::Tokenizer& tokenizer = *loaded_.tokenizer;
  const bool in_mark = renderer_.marks().has(tokenizer.token_bytes(id));
  const bool was_thinking = answer.thoughts.thinking();
  if (!tokenizer.is_special(id) || in_mark) show(answer, answer.stream->push(id));
  if (was_thinking || answer.thoughts.thinking()) ++answer.counts.thought;
  const std::int64_t budget = settings_.settings().reasoning_budget;
  if (budget >= 0 && answer.thoughts.thinking() && answer.counts.thought >= static_cast<std::size_t>(budget)) {
    answer.budget_used = true;
    return false;
  }
  return !answer.over() && !interrupt_pending() && end_signal() == 0;
}

void ChatSession::show(Answer& answer, const std::string& text) {
  if (text.empty()) return;
  for (const chat::AnswerPiece& piece : answer.thoughts.push(text)) answer.add(piece);
}

void ChatSession::close_thought(Answer& answer) {
  show(answer, answer.stream->finish());
  answer.stream.emplace(*loaded_.tokenizer);
  const chat::ThoughtMarks& marks = renderer_.marks();
  const std::string end = marks.channels ? marks.close : base::cat("\n", marks.close, "\n\n");
  const std::vector<std::int32_t> ids = loaded_.tokenizer->encode(end, {.add_special = false, .parse_special = true});
  answer.ids.insert(answer.ids.end(), ids.begin(), ids.end());
  answer.n_answer += ids.size();
  show(answer, end);
}

}  // namespace quern::tool
