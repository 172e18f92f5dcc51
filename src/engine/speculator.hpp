// Speculative decoding: which guesses are checked together with the next token. Learns what steps of each width
// cost and how often guesses are right, and guesses only where that makes the answer come sooner; what it may
// lose by being wrong is bounded. Not here: making guesses (drafter.hpp), checking them (Session::generate).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/drafter.hpp"

namespace quern::engine {

struct SpeculationOptions {
  std::size_t max_draft = 8;  // --draft-max
  bool adaptive = true;       // false: as many guesses as there are, at every step
};

struct SpeculationCounts {
  std::size_t steps = 0;        // that checked guesses
  std::size_t plain_steps = 0;  // one token, because there was no guess or it would not pay
  std::size_t drafted = 0, accepted = 0;  // of the guesses checked
  double draft_seconds = 0;               // making them
  double plain_seconds = 0;               // what the tokens would have taken one by one, estimated

  void add(const SpeculationCounts& other);
};

// Seconds of a step by its width in tokens: moving averages of what was measured, lines between and beyond.
class StepCosts {
 public:
  explicit StepCosts(std::size_t widest) : seconds_(widest + 1, 0), n_(widest + 1, 0) {}
  void add(std::size_t width, double seconds);
  bool known(std::size_t width) const { return n_[width] > 0; }
  double of(std::size_t width) const;  // known(1)

 private:
  std::vector<double> seconds_;
  std::vector<std::size_t> n_;
};

class Speculator {
 public:
  // Not owned: the drafter. Lives as long as its answers are wanted to learn from one another.
  Speculator(Drafter& drafter, const SpeculationOptions& options);

  std::size_t max_draft() const { return options_.max_draft; }
  // Guesses to check after `text`, at most `most`; valid until the next call.
  std::span<const std::int32_t> guesses(std::span<const std::int32_t> text, std::size_t most);
  // The step after guesses(): the tokens it took (1: no guess) and how many guesses were right.
  void stepped(std::size_t width, std::size_t n_accepted, double seconds);
  // The answer goes on with `id`, or another text begins.
  void token(std::int32_t id);
  void restart();

  const SpeculationCounts& counts() const { return counts_; }  // since restart()

 private:
  std::size_t best_width(std::size_t most) const;
  void judge(std::size_t place, bool right);
  double right(std::size_t place, double before) const;
  std::span<const std::int32_t> draft(std::span<const std::int32_t> text, std::size_t n);
  void watch(std::span<const std::int32_t> text);

  Drafter& drafter_;
  SpeculationOptions options_;
  StepCosts costs_;
  std::vector<double> n_right_, n_judged_;  // per place of a guess whose predecessors were right; fading
  double draft_seconds_ = 0;                // of one guess, moving average
  double lost_ = 0, total_ = 0;             // seconds against plain decoding; of all steps
  double spent_ = 0;                        // drafting since the last step
  std::size_t since_plain_ = 0;             // steps
  std::vector<std::int32_t> watched_;       // guesses that are not checked, only compared with what comes
  std::size_t n_watched_ = 0;               // of them already compared
  SpeculationCounts counts_;
};

}  // namespace quern::engine
