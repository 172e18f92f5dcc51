#include "batch_run.hpp"

#include "base/error.hpp"
#include "batch/item_error.hpp"
#include "signals.hpp"
#include "text/token_text.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kMostLinesAtOnce = 256;  // between two steps of the model
constexpr std::chrono::milliseconds kCheckInterval{500};

const char* reason_name(engine::FinishReason reason) {
  return reason == engine::FinishReason::length ? "length" : "stop";
}

batch::ScoredToken scored(const text::TokenText& texts, const TokenScore& score) {
  batch::ScoredToken out{{score.id, texts.of(score.id), score.logprob}, {}};
  for (const auto& [id, logprob] : score.top) out.top.push_back({id, texts.of(id), logprob});
  return out;
}

}  // namespace

BatchRun::BatchRun(const BatchJob& job, TaskMaker& tasks)
    : job_(job),
      tasks_(tasks),
      reader_(job.files.input),
      sequences_(job.loaded, job.options),
      embedder_(job.loaded, job.options.answer.model),
      reorder_(!job.options.unordered) {}

void BatchRun::run() {
  while (!interrupted()) {
    take();
    if (!embedder_.idle()) embedder_.run(interrupted);
    const bool worked = sequences_.step(interrupted);
    job_.files.output.sync_if_due();
    refresh();
    check_input();
    if (ended_ && !worked && sequences_.idle() && embedder_.idle()) break;
  }
  if (interrupted()) {
    sequences_.cancel();
    embedder_.cancel();
  }
  refresh();
  job_.files.input.check_unchanged();
}

void BatchRun::refresh() {
  const BatchSequences::Totals totals = sequences_.totals();
  BatchCounts& counts = job_.files.counts;
  counts.prompt_tokens = totals.prefill_tokens;
  counts.reused_tokens = totals.reused_tokens;
  counts.answer_tokens = totals.decode_tokens;
  counts.most_running = totals.most_running;
  counts.n_running = totals.n_running;
  counts.embedded_tokens = embedder_.n_done_tokens();
  job_.progress.update(counts);
}

void BatchRun::check_input() {
  const auto now = std::chrono::steady_clock::now();
  if (now - checked_ < kCheckInterval) return;
  checked_ = now;
  job_.files.input.check_unchanged();
}

void BatchRun::take() {
  batch::Line line;
  for (std::size_t n = 0; n < kMostLinesAtOnce && !ended_ && !interrupted(); ++n) {
    if (!reorder_.has_room(n_begun_) || !sequences_.wants_more() || embedder_.full()) return;
    ended_ = !reader_.next(line);
    if (ended_) break;
    const std::size_t at = n_read_++;
    if (at >= job_.files.index.size()) base::reject(job_.files.input.name(), "the input changed while it was read: it has more lines");
    if (job_.files.index.done(at)) {
      --n;
      continue;
    }
    take_line(line);
  }
  if (ended_ && n_read_ != job_.files.index.size())
    base::reject(job_.files.input.name(), "the input changed while it was read: it has fewer lines");
}

void BatchRun::take_line(const batch::Line& line) {
  auto owned = std::make_unique<Item>();
  Item& item = *owned;
  item.order = n_begun_++;
  batch::LineIdentity identity = batch::identify(line, job_.files.format);
  if (identity.key != job_.files.index.key(n_read_ - 1))
    base::reject(base::cat(job_.files.input.name(), ":", line.number), "the input changed while it was read");
  item.facts = {line.number, identity.key, std::move(identity.custom_id), job_.files.format, job_.loaded.model->contract.name,
                job_.options.ids};
  items_.emplace(item.order, std::move(owned));
  try {
    item.request = batch::read_request(line, job_.files.format);
    if (item.request.endpoint == batch::Endpoint::embedding) begin_embedding(item);
    else begin_answers(item);
  } catch (const batch::ItemError& error) {
    const std::size_t order = item.order;
    const batch::FinishedLine text{batch::error_line(item.facts, error), true};
    items_.erase(order);
    write(order, text);
  }
}

void BatchRun::begin_answers(Item& item) {
  std::vector<AnswerTask> tasks = tasks_.make(item.request, item.facts.key);
  item.n_open = tasks.size();
  item.generated.choices.resize(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    AnswerTask& task = tasks[i];
    if (i % item.request.n == 0) item.generated.prompt_tokens += task.n_prompt();
    item.generated.choices[i].seed = task.seed;
    const std::string echo = std::move(task.echo);
    try {
      sequences_.add(std::move(task), [this, &item, i, echo](Answer answer, const std::string& error) {
        answered(item, i, echo, std::move(answer), error);
      });
    } catch (const base::Error& error) {  // a source that is too long and the like; the others go on
      if (error.code() != base::ExitCode::input) throw;
      answered(item, i, "", {}, error.what());
    }
  }
}

void BatchRun::begin_embedding(Item& item) {
  std::vector<BatchEmbedder::Text> texts = embedder_.prepare(item.request);
  item.n_open = texts.size();
  item.embedded.vectors.resize(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    item.embedded.prompt_tokens += texts[i].ids.size();
    embedder_.add(std::move(texts[i]), [this, &item, i](std::vector<float> vector, const std::string& error) {
      item.embedded.vectors[i] = std::move(vector);
      if (!error.empty()) item.error = error;
      if (--item.n_open == 0) finish(item);
    });
  }
}

void BatchRun::answered(Item& item, std::size_t place, const std::string& echo, Answer answer, const std::string& error) {
  batch::ChoiceResult& choice = item.generated.choices[place];
  if (!error.empty()) item.error = error;
  choice.text = echo + answer.text;
  item.generated.completion_tokens += answer.ids.size();
  choice.ids = std::move(answer.ids);
  choice.finish_reason = reason_name(answer.reason);
  if (!answer.scores.empty()) {
    const text::TokenText texts(need_tokenizer(job_.loaded));
    for (const TokenScore& score : answer.scores) choice.scores.push_back(scored(texts, score));
  }
  if (--item.n_open == 0) finish(item);
}

// The item is gone afterwards.
void BatchRun::finish(Item& item) {
  batch::FinishedLine line;
  line.failed = !item.error.empty();
  if (line.failed)
    line.text = batch::error_line(item.facts, batch::ItemError("generation_failed", "", item.error));
  else if (item.request.endpoint == batch::Endpoint::embedding)
    line.text = batch::embedding_line(item.facts, item.request, item.embedded);
  else
    line.text = batch::generation_line(item.facts, item.request, item.generated);
  const std::size_t order = item.order;
  items_.erase(order);
  write(order, std::move(line));
}

void BatchRun::write(std::size_t order, batch::FinishedLine line) {
  reorder_.finish(order, std::move(line), [this](const batch::FinishedLine& one) {
    job_.files.output.append(one.text);
    ++(one.failed ? job_.files.counts.failed : job_.files.counts.done);
  });
}

}  // namespace quern::tool
