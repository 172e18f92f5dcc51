#include "engine/speculator.hpp"

#include <algorithm>
#include <chrono>

namespace quern::engine {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPlainFirst = 2;     // steps that show what one token costs
constexpr std::size_t kPlainEvery = 32;    // steps, one shows it again
constexpr double kMostLost = 0.02;         // of all the time, against plain decoding
constexpr double kLeastGain = 1.03;        // below this a width is not worth its risk
constexpr double kFade = 0.97;             // of what was judged before, per judgement
constexpr double kPriorWeight = 2;         // judgements that what is believed at first counts for
constexpr double kSlope = 0.25;            // of a further token, in steps of one, before it is measured
constexpr std::size_t kProbeWidth = 3;     // guesses of a try whose outcome nobody knows

}  // namespace

void SpeculationCounts::add(const SpeculationCounts& other) {
  steps += other.steps;
  plain_steps += other.plain_steps;
  drafted += other.drafted;
  accepted += other.accepted;
  draft_seconds += other.draft_seconds;
  plain_seconds += other.plain_seconds;
}

void StepCosts::add(std::size_t width, double seconds) {
  double& mean = seconds_[width];
  const double count = static_cast<double>(std::min<std::size_t>(++n_[width], 16));
  if (n_[width] > 1) seconds = std::min(seconds, 2 * mean);  // an interrupted step says nothing about the next
  mean += (seconds - mean) / count;
}

double StepCosts::of(std::size_t width) const {
  if (known(width)) return seconds_[width];
  std::size_t below = width, before = 0, above = width;
  while (below > 1 && !known(below)) --below;
  while (above < n_.size() && !known(above)) ++above;
  for (std::size_t w = below - 1; w > 0 && before == 0; --w)
    if (known(w)) before = w;
  const double steps = static_cast<double>(width - below);
  double slope = kSlope * seconds_[1];
  if (above < n_.size())
    slope = (seconds_[above] - seconds_[below]) / static_cast<double>(above - below);
  else if (before != 0)
    slope = (seconds_[below] - seconds_[before]) / static_cast<double>(below - before);
  return seconds_[below] + std::max(slope, 0.0) * steps;
}

Speculator::Speculator(Drafter& drafter, const SpeculationOptions& options)
    : drafter_(drafter),
      options_(options),
      costs_(options.max_draft + 1),
      n_right_(options.max_draft, 0),
      n_judged_(options.max_draft, 0) {}

// How often the guess at `place` is right when those before it are, of which the last is so with `before`: what
// is known of one place is believed of the next until that was judged itself.
double Speculator::right(std::size_t place, double before) const {
  return (n_right_[place] + before * kPriorWeight) / (n_judged_[place] + kPriorWeight);
}

void Speculator::judge(std::size_t place, bool is_right) {
  n_right_[place] = kFade * n_right_[place] + (is_right ? 1 : 0);
  n_judged_[place] = kFade * n_judged_[place] + 1;
}

// The number of guesses with the most tokens a second, by what is known; 0: plain decoding.
std::size_t Speculator::best_width(std::size_t most) const {
  if (!options_.adaptive) return most;
  if (!costs_.known(1) || lost_ > kMostLost * total_) return 0;
  std::size_t best = 0;
  double best_rate = kLeastGain / costs_.of(1), tokens = 1, chance = 1;
  // At first little is believed of guesses that can be watched before they are trusted; a model's must be tried.
  double is_right = drafter_.cheap() ? 0.25 : 0.75;
  for (std::size_t n = 1; n <= most; ++n) {
    is_right = right(n - 1, is_right);
    chance *= is_right;
    tokens += chance;
    const double rate = tokens / (costs_.of(n + 1) + draft_seconds_ * static_cast<double>(n));
    if (rate <= best_rate) continue;
    best = n;
    best_rate = rate;
  }
  return best;
}

std::span<const std::int32_t> Speculator::draft(std::span<const std::int32_t> text, std::size_t n) {
  const Clock::time_point start = Clock::now();
  const std::span<const std::int32_t> guesses = drafter_.draft(text, n);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  spent_ += seconds;
  counts_.draft_seconds += seconds;
  const double each = seconds / static_cast<double>(n);
  draft_seconds_ += (each - draft_seconds_) / 8;
  return guesses;
}

// Guesses that cost next to nothing are made in any case, to see whether they come true.
void Speculator::watch(std::span<const std::int32_t> text) {
  if (!drafter_.cheap() || n_watched_ < watched_.size()) return;
  const std::span<const std::int32_t> guesses = draft(text, options_.max_draft);
  watched_.assign(guesses.begin(), guesses.end());
  n_watched_ = 0;
}

std::span<const std::int32_t> Speculator::guesses(std::span<const std::int32_t> text, std::size_t most) {
  most = std::min(most, options_.max_draft);
  if (most == 0) return {};
  std::size_t n = since_plain_ < kPlainEvery || !options_.adaptive ? best_width(most) : 0;
  // A model's guesses are tried now and then, as long as that costs little.
  if (n == 0 && !drafter_.cheap() && since_plain_ < kPlainEvery && costs_.known(1) && counts_.plain_steps >= kPlainFirst &&
      lost_ + costs_.of(1) < kMostLost * total_)
    n = std::min(most, kProbeWidth);
  if (n == 0) {
    watch(text);
    return {};
  }
  watched_.clear();
  n_watched_ = 0;
  return draft(text, n);
}

void Speculator::stepped(std::size_t width, std::size_t n_accepted, double seconds) {
  const double tokens = static_cast<double>(n_accepted + 1);
  costs_.add(width, seconds);
  for (std::size_t i = 0; i + 1 < width && i <= n_accepted; ++i) judge(i, i < n_accepted);
  if (width > 1) {
    ++since_plain_;
    ++counts_.steps;
    counts_.drafted += width - 1;
    counts_.accepted += n_accepted;
  } else {
    since_plain_ = 0;
    ++counts_.plain_steps;
  }
  const double plain = costs_.known(1) ? costs_.of(1) * tokens : seconds;
  counts_.plain_seconds += width == 1 ? seconds : plain;
  total_ += seconds + spent_;
  lost_ += spent_ + (width == 1 ? 0 : seconds - plain);
  // What was gained is not put at stake later.
  lost_ = std::max(lost_, costs_.known(1) ? -2 * costs_.of(1) : 0.0);
  spent_ = 0;
}

void Speculator::token(std::int32_t id) {
  if (n_watched_ >= watched_.size()) return;
  const bool is_right = watched_[n_watched_] == id;
  judge(n_watched_, is_right);
  n_watched_ = is_right ? n_watched_ + 1 : watched_.size();
}

void Speculator::restart() {
  counts_ = {};
  watched_.clear();
  n_watched_ = 0;
  spent_ = 0;
}

}  // namespace quern::engine
