// Beam search as the `transformers` library does it: the same hypotheses with the same scores,
// equal ones by lowest beam and id. Works on an abstract model, so that it knows no caches. Memory:
// one row of scores, the sequences of 2 * n_beams hypotheses and of their candidates. Not here:
// rules about tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sampling/token_rules.hpp"

namespace quern::engine {

// When a search with n_beams finished hypotheses ends. yes: at once; no: when the best running one,
// at its length, is no better than the worst finished one; never: when it could not become better
// at any length.
enum class EarlyStopping { no, yes, never };

struct BeamOptions {
  std::size_t n_beams = 1;
  std::size_t n_return = 1;   // at most n_beams
  double length_penalty = 1;  // a score is the sum of log-probabilities / length ^ length_penalty
  EarlyStopping early_stopping = EarlyStopping::no;
  std::size_t max_length = 0;  // of the sequence, its prompt included
  std::vector<std::int32_t> ends;
  std::function<bool()> stop_requested = {};  // asked at every step; true ends with what there is
};

// What the search runs on. All beams begin as the prompt.
class BeamModel {
 public:
  virtual ~BeamModel() = default;
  // Logits [vocab_size] of the token after beam `beam`, until the next advance().
  virtual std::span<const float> logits(std::size_t beam) = 0;
  // Beam i is from now on what beam parents[i] was, followed by ids[i].
  virtual void advance(std::span<const std::size_t> parents, std::span<const std::int32_t> ids) = 0;
};

struct Hypothesis {
  std::vector<std::int32_t> ids;  // without the prompt, the end token included
  float score = 0;
  bool finished = false;  // by an end token or max_length; false: the search was interrupted
};

// The best n_return hypotheses, best first; fewer when fewer could be finished, but at least one.
std::vector<Hypothesis> beam_search(BeamModel& model, std::span<const std::int32_t> prompt,
                                    sampling::TokenRules& rules, const BeamOptions& options);

}  // namespace quern::engine
