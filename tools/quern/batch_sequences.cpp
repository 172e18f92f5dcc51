#include "batch_sequences.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace quern::tool {

namespace {

engine::SchedulerOptions scheduler_options(const LoadedModel& loaded, const BatchOptions& options) {
  const ModelOptions& model = options.answer.model;
  engine::SchedulerOptions out;
  out.cache = session_options(loaded, model, 0).cache;
  out.n_parallel = options.n_parallel;
  out.step_tokens = model.prefill_chunk;
  if (loaded.model->encoder) out.source_length = out.cache.max_tokens;
  return out;
}

}  // namespace

BatchSequences::BatchSequences(const LoadedModel& loaded, const BatchOptions& options)
    : loaded_(loaded), options_(options) {}

BatchSequences::~BatchSequences() = default;

engine::Scheduler& BatchSequences::scheduler() {
  if (!scheduler_)
    scheduler_ = std::make_unique<engine::Scheduler>(*loaded_.model, *loaded_.pool, scheduler_options(loaded_, options_));
  return *scheduler_;
}

void BatchSequences::add(AnswerTask task, OnDone on_done) {
  if (task.plan.beams.n_beams > 1) {
    searches_.push_back({std::move(task), std::move(on_done)});
    return;
  }
  auto builder = std::make_shared<AnswerBuilder>(loaded_, std::move(task.answer), task.plan.stop_ids,
                                                 [](const std::string&) {});
  engine::SequenceRequest request;
  request.prompt = std::move(task.prompt);
  request.source = std::move(task.source);
  request.sampler = std::move(task.sampler);
  request.keep = task.form;
  request.max_new_tokens = task.plan.max_new_tokens;
  request.stop_ids = task.plan.stop_ids;
  request.on_token = [this, builder](std::int32_t id, std::span<const float> logits) {
    ++answered_tokens_;
    return builder->token(id, logits);
  };
  request.on_finished = [builder, done = std::move(on_done)](const engine::SequenceOutcome& outcome) {
    Answer answer = builder->finish(outcome.reason);
    if (!outcome.error.empty()) done({}, outcome.error);
    else if (answer.reason != engine::FinishReason::interrupted) done(std::move(answer), "");
  };
  scheduler().add(std::move(request));
}

bool BatchSequences::wants_more() const {
  if (searches_.size() >= options_.n_parallel) return false;
  return !scheduler_ || scheduler_->wants_more();
}

bool BatchSequences::idle() const {
  return searches_.empty() && (!scheduler_ || scheduler_->n_running() + scheduler_->n_waiting() == 0);
}

bool BatchSequences::step(const std::function<bool()>& stop_requested) {
  bool worked = scheduler_ && scheduler_->step(stop_requested);
  if (searches_.empty()) return worked;
  Search one = std::move(searches_.front());
  searches_.pop_front();
  Answer answer;
  std::string error;
  try {
    answer = search(one.task, stop_requested);
  } catch (const base::Error& caught) {
    if (caught.code() != base::ExitCode::input) throw;
    error = caught.what();
  }
  if (!error.empty() || answer.reason != engine::FinishReason::interrupted) one.on_done(std::move(answer), error);
  return true;
}

// A session of its own, as for a single prompt of `quern run`.
Answer BatchSequences::search(const AnswerTask& task, const std::function<bool()>& stop_requested) {
  const std::size_t total = task.prompt.size() + task.plan.max_new_tokens;
  engine::SessionOptions options = session_options(loaded_, options_.answer.model, total);
  options.source_length = task.source.size();
  options.n_beams = task.plan.beams.n_beams;
  options.cache.max_tokens = std::min(options.cache.max_tokens, total);
  engine::Session session(*loaded_.model, *loaded_.pool, options);
  if (!task.source.empty()) session.encode(task.source);
  sampling::TokenRules rules(task.plan.rules, loaded_.model->contract.vocab_size);
  engine::BeamOptions beams = task.plan.beams;
  beams.stop_requested = stop_requested;
  const engine::Session::SearchResult found = session.search(task.prompt, rules, beams);
  Answer answer;
  answer.ids = found.hypotheses.front().ids;
  answer.reason = found.reason;
  searched_prompt_ += task.n_prompt();
  searched_answer_ += answer.ids.size();
  if (!answer.ids.empty() && std::find(beams.ends.begin(), beams.ends.end(), answer.ids.back()) != beams.ends.end())
    answer.ids.pop_back();
  answer.text = text_of_ids(loaded_, answer.ids, task.answer.text);
  return answer;
}

void BatchSequences::cancel() {
  searches_.clear();
  if (scheduler_) scheduler_->cancel();
}

BatchSequences::Totals BatchSequences::totals() const {
  Totals totals{searched_prompt_, 0, searched_answer_ + answered_tokens_, searches_.empty() ? 0U : 1U, searches_.size()};
  if (!scheduler_) return totals;
  totals.prefill_tokens += scheduler_->totals().prefill_tokens;
  totals.reused_tokens += scheduler_->totals().reused_tokens;
  totals.most_running = std::max(totals.most_running, scheduler_->totals().most_running);
  totals.n_running += scheduler_->n_running();
  return totals;
}

}  // namespace quern::tool
