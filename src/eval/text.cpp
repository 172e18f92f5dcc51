#include "eval/text.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "eval/rows.hpp"

namespace quern::eval {

namespace {

// What a scored position gives of one subject.
struct Position {
  double nll = 0, kl = 0;
  bool same_top = true, finite = true;
};

class TextRun {
 public:
  TextRun(std::span<Subject* const> subjects, std::span<const std::int32_t> ids, const TextOptions& options)
      : subjects_(subjects), options_(options), ids_(ids) {
    for (const Subject* subject : subjects) report.scores.push_back({subject->name(), {}});
    report.divergences.resize(subjects.size() - 1);
  }

  // False: stopped, the window does not count.
  bool window(const Window& window) {
    pending_.clear();
    tokens_.assign(ids_.begin() + static_cast<std::ptrdiff_t>(window.first),
                   ids_.begin() + static_cast<std::ptrdiff_t>(window.first + window.n));
    if (options_.first_id) tokens_[0] = *options_.first_id;
    for (Subject* subject : subjects_) subject->clear();
    // The last token is predicted and predicts nothing.
    const std::size_t end = window.n - 1;
    for (std::size_t at = 0; at < end;) {
      const std::size_t n = std::min(chunk(), end - at);
      if (!step(at, n, window.scored - 1)) return false;
      at += n;
    }
    add_pending();
    report.tokens += window.n;
    ++report.windows;
    return true;
  }

  TextReport report;

 private:
  std::size_t chunk() const {
    std::size_t least = SIZE_MAX;
    for (const Subject* subject : subjects_) least = std::min(least, subject->chunk());
    return least;
  }

  // Positions [at, at + n) of the window; those from first_wanted on predict a scored token.
  bool step(std::size_t at, std::size_t n, std::size_t first_wanted) {
    const bool wanted = at + n > first_wanted;
    for (Subject* subject : subjects_) {
      if (options_.stop_requested && options_.stop_requested()) return false;
      if (!subject->forward({tokens_.data() + at, n}, wanted ? model::Want::all : model::Want::none)) return false;
    }
    if (!wanted) return true;
    const std::size_t skipped = first_wanted > at ? first_wanted - at : 0;
    score(at, skipped, n);
    return true;
  }

  // Rows in parallel, results in order.
  void score(std::size_t at, std::size_t first_row, std::size_t end_row) {
    const std::size_t n_rows = end_row - first_row, n_subjects = subjects_.size(), base = pending_.size();
    pending_.resize(base + n_rows * n_subjects);
    auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i)
        score_position(first_row + i, tokens_[at + first_row + i + 1], &pending_[base + i * n_subjects]);
    };
    subjects_[0]->pool().parallel_for(n_rows, 1, work);
    for (std::size_t i = 0; i < n_rows * n_subjects; ++i)
      if (!pending_[base + i].finite)
        base::reject(base::printable(subjects_[i % n_subjects]->name()),
                     base::cat("logits are not finite after ", at + first_row + i / n_subjects + 1, " tokens of a window"));
  }

  void score_position(std::size_t row, std::int32_t id, Position* out) const {
    const std::size_t n = subjects_[0]->vocab_size();
    const float* first = subjects_[0]->logits(row);
    const RowScore reference = score_row(first, n);
    for (std::size_t s = 0; s < subjects_.size(); ++s) {
      const float* logits = subjects_[s]->logits(row);
      const RowScore own = s == 0 ? reference : score_row(logits, n);
      out[s].finite = own.finite;
      out[s].nll = -log_probability(own, logits, id);
      if (s == 0) continue;
      out[s].same_top = own.best == reference.best;
      out[s].kl = divergence(reference, first, own, logits, n);
    }
  }

  void add_pending() {
    const std::size_t n = subjects_.size();
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      const Position& position = pending_[i];
      report.scores[i % n].nll.add(position.nll);
      if (i % n == 0) continue;
      const Position& first = pending_[i - i % n];
      Divergence& divergence = report.divergences[i % n - 1];
      divergence.kl.add(position.kl);
      divergence.kls.push_back(static_cast<float>(position.kl));
      divergence.same_top.add(position.same_top ? 1.0 : 0.0);
      divergence.log_ratio.add(position.nll - first.nll);
      const double change = std::exp(-position.nll) - std::exp(-first.nll);
      divergence.probability_change.add(change);
      divergence.squared_change.add(change * change);
    }
  }

  std::span<Subject* const> subjects_;
  const TextOptions& options_;
  std::span<const std::int32_t> ids_;
  std::vector<std::int32_t> tokens_;
  std::vector<Position> pending_;  // of the window: [positions, subjects]
};

// Stops are asked between layers only while a text is evaluated.
class StopScope {
 public:
  StopScope(std::span<Subject* const> subjects, const std::function<bool()>& stop) : subjects_(subjects) {
    for (Subject* subject : subjects_) subject->set_stop(stop);
  }
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
  ~StopScope() {
    for (Subject* subject : subjects_) subject->set_stop({});
  }

 private:
  std::span<Subject* const> subjects_;
};

}  // namespace

double TextScore::perplexity() const { return std::exp(nll.mean()); }

double TextScore::perplexity_error() const { return perplexity() * nll.error(); }

std::vector<Window> make_windows(std::size_t n_tokens, const WindowOptions& options, const std::string& where) {
  const std::size_t context = options.context;
  std::size_t scored = options.stride == 0 ? context / 2 + 1 : context - options.stride;
  if (options.depth) scored = *options.depth;
  scored = std::max<std::size_t>(scored, 1);
  QUERN_ASSERT(context >= 2 && scored < context);
  const std::size_t step = options.stride == 0 ? context : options.stride;
  std::vector<Window> windows;
  for (std::size_t first = 0; first + context <= n_tokens; first += step) {
    if (options.most != 0 && windows.size() == options.most) break;
    windows.push_back({first, context, scored});
  }
  if (windows.empty())
    base::reject(where, "text is too short", base::cat(n_tokens, " tokens"),
                 base::cat("at least ", context, ", the context of a window (-c)"));
  return windows;
}

TextReport evaluate_text(std::span<Subject* const> subjects, std::span<const std::int32_t> ids,
                         std::span<const Window> windows, const TextOptions& options) {
  const StopScope scope(subjects, options.stop_requested);
  TextRun run(subjects, ids, options);
  for (const Window& window : windows) {
    if ((options.stop_requested && options.stop_requested()) || !run.window(window)) {
      run.report.interrupted = true;
      break;
    }
    if (options.on_window) options.on_window(run.report, windows.size());
  }
  for (Divergence& divergence : run.report.divergences) std::sort(divergence.kls.begin(), divergence.kls.end());
  return std::move(run.report);
}

}  // namespace quern::eval
