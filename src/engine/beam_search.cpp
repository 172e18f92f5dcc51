#include "engine/beam_search.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "sampling/scores.hpp"

namespace quern::engine {

namespace {

// Beside any real score: a place not taken yet, or a hypothesis that may not be taken.
constexpr float kOut = -1e9F;

struct Beam {
  std::vector<std::int32_t> sequence;
  float score = kOut;
};

struct Finished {
  std::vector<std::int32_t> sequence;
  float score = kOut;
  bool finished = false;
};

// A beam and one token more.
struct Candidate {
  std::size_t parent;
  std::int32_t id;
  float score;
};

// Best first; equal scores by beam, then by id.
bool before(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.parent != b.parent ? a.parent < b.parent : a.id < b.id;
}

template <class T>
std::vector<float> scores_of(const std::vector<T>& list) {
  std::vector<float> scores;
  scores.reserve(list.size());
  for (const T& element : list) scores.push_back(element.score);
  return scores;
}

class Search {
 public:
  Search(BeamModel& model, std::span<const std::int32_t> prompt, sampling::TokenRules& rules,
         const BeamOptions& options);
  std::vector<Hypothesis> run();

 private:
  void gather_candidates();
  void keep(const Candidate& candidate);
  bool stops(const Candidate& candidate) const;
  std::vector<std::int32_t> sequence_of(const Candidate& candidate) const;
  void update_finished(const std::vector<bool>& stopped);
  void continue_beams(const std::vector<bool>& stopped);
  bool can_improve() const;
  bool all_finished() const;
  std::size_t new_length() const { return running_.front().sequence.size() - prompt_length_; }
  float divided(float score, std::size_t length) const {
    return score /
           static_cast<float>(std::pow(static_cast<double>(length), options_.length_penalty));
  }
  std::vector<Hypothesis> results() const;

  BeamModel& model_;
  sampling::TokenRules& rules_;
  const BeamOptions& options_;
  const std::size_t prompt_length_, n_candidates_;
  std::vector<Beam> running_;          // best first
  std::vector<Finished> finished_;     // best first
  std::vector<Candidate> candidates_;  // of one step: first a heap, then best first
  std::vector<float> row_;
  bool improvable_ = true;  // a running hypothesis may still beat a finished one
  bool open_ = true;        // the search goes on
};

Search::Search(BeamModel& model, std::span<const std::int32_t> prompt, sampling::TokenRules& rules,
               const BeamOptions& options)
    : model_(model),
      rules_(rules),
      options_(options),
      prompt_length_(prompt.size()),
      // Enough that n_beams go on even if the best ones all end.
      n_candidates_(std::max<std::size_t>(2, 1 + options.ends.size()) * options.n_beams),
      running_(options.n_beams),
      finished_(options.n_beams) {
  for (Beam& beam : running_) beam.sequence.assign(prompt.begin(), prompt.end());
  running_.front().score = 0;  // the others begin equal to it, and would only repeat its candidates
  candidates_.reserve(n_candidates_);
}

void Search::keep(const Candidate& candidate) {
  if (candidates_.size() == n_candidates_) {
    if (!before(candidate, candidates_.front())) return;
    std::pop_heap(candidates_.begin(), candidates_.end(), before);
    candidates_.pop_back();
  }
  candidates_.push_back(candidate);
  std::push_heap(candidates_.begin(), candidates_.end(), before);
}

void Search::gather_candidates() {
  candidates_.clear();
  for (std::size_t b = 0; b < running_.size(); ++b) {
    const std::span<const float> logits = model_.logits(b);
    sampling::check_finite(logits, new_length());
    row_.assign(logits.begin(), logits.end());
    sampling::log_softmax(row_);
    rules_.apply(running_[b].sequence, row_);
    for (std::size_t id = 0; id < row_.size(); ++id)
      keep({b, static_cast<std::int32_t>(id), row_[id] + running_[b].score});
  }
  std::sort_heap(candidates_.begin(), candidates_.end(), before);
}

bool Search::stops(const Candidate& candidate) const {
  return running_.front().sequence.size() + 1 >= options_.max_length ||
         std::find(options_.ends.begin(), options_.ends.end(), candidate.id) != options_.ends.end();
}

std::vector<std::int32_t> Search::sequence_of(const Candidate& candidate) const {
  std::vector<std::int32_t> sequence = running_[candidate.parent].sequence;
  sequence.push_back(candidate.id);
  return sequence;
}

bool Search::all_finished() const {
  return std::all_of(finished_.begin(), finished_.end(),
                     [](const Finished& f) { return f.finished; });
}

// The best n_beams of the finished hypotheses and those that now end. Only the first n_beams
// candidates may end; what may not be taken loses kOut.
void Search::update_finished(const std::vector<bool>& stopped) {
  const bool closed =
      !improvable_ || (options_.early_stopping == EarlyStopping::yes && all_finished());
  std::vector<Finished> merged = finished_;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const bool ends = stopped[i] && i < options_.n_beams;
    float score = divided(candidates_[i].score, new_length() + 1);
    if (closed) score += kOut;
    if (!ends) score += kOut;
    merged.push_back(
        {ends ? sequence_of(candidates_[i]) : std::vector<std::int32_t>(), score, ends});
  }
  std::vector<Finished> best;
  for (const std::size_t i : sampling::best_indexes(scores_of(merged), options_.n_beams))
    best.push_back(std::move(merged[i]));
  finished_ = std::move(best);
}

void Search::continue_beams(const std::vector<bool>& stopped) {
  std::vector<float> scores = scores_of(candidates_);
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (stopped[i]) scores[i] += kOut;
  std::vector<Beam> next;
  std::vector<std::size_t> parents;
  std::vector<std::int32_t> ids;
  for (const std::size_t i : sampling::best_indexes(scores, options_.n_beams)) {
    next.push_back({sequence_of(candidates_[i]), scores[i]});
    parents.push_back(candidates_[i].parent);
    ids.push_back(candidates_[i].id);
  }
  running_ = std::move(next);
  improvable_ = improvable_ && can_improve();
  const bool open = !(options_.early_stopping == EarlyStopping::yes && all_finished());
  const bool continues = std::find(stopped.begin(), stopped.end(), false) != stopped.end();
  open_ = improvable_ && open && continues;
  if (open_) model_.advance(parents, ids);
}

// Could the best running hypothesis still beat the worst finished one?
bool Search::can_improve() const {
  const bool at_most =
      options_.early_stopping == EarlyStopping::never && options_.length_penalty > 0;
  const std::size_t length = at_most ? options_.max_length - prompt_length_ : new_length();
  const float best = divided(running_.front().score, length);
  float worst = finished_.front().score;
  for (const Finished& f : finished_) worst = std::min(worst, f.score);
  return std::any_of(finished_.begin(), finished_.end(),
                     [&](const Finished& f) { return best > (f.finished ? worst : kOut); });
}

std::vector<Hypothesis> Search::results() const {
  const auto prompt = static_cast<std::ptrdiff_t>(prompt_length_);
  std::vector<Hypothesis> out;
  for (const Finished& f : finished_)
    if (f.finished && out.size() < options_.n_return)
      out.push_back({{f.sequence.begin() + prompt, f.sequence.end()}, f.score, true});
  if (!out.empty()) return out;
  const Beam& best = running_.front();
  const std::size_t length = std::max<std::size_t>(new_length(), 1);
  return {
      {{best.sequence.begin() + prompt, best.sequence.end()}, divided(best.score, length), false}};
}

std::vector<Hypothesis> Search::run() {
  if (prompt_length_ >= options_.max_length) return {Hypothesis{{}, 0, true}};
  while (open_) {
    if (options_.stop_requested && options_.stop_requested()) break;
    gather_candidates();
    std::vector<bool> stopped;
    for (const Candidate& candidate : candidates_) stopped.push_back(stops(candidate));
    update_finished(stopped);
    continue_beams(stopped);
  }
  return results();
}

}  // namespace

std::vector<Hypothesis> beam_search(BeamModel& model, std::span<const std::int32_t> prompt,
                                    sampling::TokenRules& rules, const BeamOptions& options) {
  QUERN_ASSERT(options.n_beams > 0 && options.n_return <= options.n_beams);
  return Search(model, prompt, rules, options).run();
}

}  // namespace quern::engine
