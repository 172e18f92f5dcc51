// Perplexity of a text under one model, and how far others are from it: KL divergence, agreement of the most
// probable token, differences of probability, all in one pass without a file of logits. Memory grows by four
// bytes per scored token and comparison, for the percentiles.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/statistics.hpp"
#include "eval/subject.hpp"

namespace quern::eval {

// Tokens [first, first + n) of the text are read from an empty cache; those from `scored` on (within the window)
// are predicted.
struct Window {
  std::size_t first, n, scored;
};
struct WindowOptions {
  std::size_t context = 512;
  std::size_t stride = 0;              // 0: windows side by side, the second half of each scored; else
                                       // windows every `stride` tokens, the last `stride` of each scored
  std::optional<std::size_t> depth = {};  // tokens from this depth on are scored instead
  std::size_t most = 0;                // windows (0: all)
};
// Windows that lie whole in a text of n_tokens; input error ("where") where there is none.
std::vector<Window> make_windows(std::size_t n_tokens, const WindowOptions& options, const std::string& where);

struct TextScore {
  std::string name;
  Mean nll;  // of a scored token, in nats
  double perplexity() const;
  double perplexity_error() const;
};

// Another subject beside the first.
struct Divergence {
  Mean kl;                  // of the other from the first, nats per token
  Mean same_top;            // 1 where the most probable tokens are the same
  Mean log_ratio;           // of the tokens' negative log-likelihoods: ln PPL(other) / PPL(first)
  Mean probability_change;  // of the right token
  Mean squared_change;
  std::vector<float> kls;   // sorted by finish()
};

struct TextReport {
  std::vector<TextScore> scores;         // one per subject
  std::vector<Divergence> divergences;   // of subjects 1, 2, ...
  std::size_t windows = 0, tokens = 0;   // done; tokens read
  bool interrupted = false;
};

struct TextOptions {
  std::optional<std::int32_t> first_id = {};  // takes the place of each window's first token (a text's beginning)
  std::function<bool()> stop_requested = {};
  std::function<void(const TextReport&, std::size_t n_windows)> on_window = {};
};

// Input error where logits are not finite. All subjects share the vocabulary.
TextReport evaluate_text(std::span<Subject* const> subjects, std::span<const std::int32_t> ids,
                         std::span<const Window> windows, const TextOptions& options);

}  // namespace quern::eval
