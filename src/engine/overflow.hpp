// What is kept of a text that outgrew the context: which ids are dropped, and how many. The kept ids
// get the positions 0, 1, 2, ... and are prefilled again by the next generate(), so that the cache is
// that of a fresh run over them, bit for bit; nothing is rotated or patched in place (DECISIONS).
// Not here: dropping whole turns, which needs the template (chat/context_fit.hpp); announcing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quern::engine {

enum class OverflowPolicy {
  error,     // refuse
  truncate,  // drop the oldest whole turns after the system message
  shift,     // drop the older half of what follows the first `keep` tokens
  sinks,     // keep the first `n_sinks` tokens and the most recent ones (arXiv 2309.17453)
};

// "error", "truncate", "shift", "sinks": --on-overflow.
std::optional<OverflowPolicy> overflow_policy_of(std::string_view word);
std::string_view overflow_policy_name(OverflowPolicy policy);

struct OverflowOptions {
  OverflowPolicy policy = OverflowPolicy::error;
  std::size_t keep = 0;     // shift: first tokens that are never dropped (--keep; chat: the system message)
  std::size_t n_sinks = 4;  // sinks: the same, attention sinks
};

// What one drop did. Tokens [first, first + n_dropped) of the text are gone in all; the tokens behind
// them moved down to positions from `first` on.
struct OverflowReport {
  OverflowPolicy policy = OverflowPolicy::error;
  std::size_t n_new = 0;       // dropped by this call
  std::size_t first = 0;
  std::size_t n_dropped = 0;   // in all
  std::size_t n_kept = 0;      // tokens now at positions 0 ... n_kept - 1
  std::size_t n_turns = 0;     // truncate: whole turns dropped by this call
};
// One line for people: "context full: dropped 512 tokens (positions 24-535); the 488 behind them moved to
// positions 24-511 and are computed again".
std::string overflow_text(const OverflowReport& report);

// Policies shift and sinks over a text that grows. What was dropped stays dropped while the text still has
// it at its place; a text that changed there, or fits again, is looked at afresh.
class TokenWindow {
 public:
  TokenWindow(const OverflowOptions& options, std::size_t context);

  // The ids of `text` to run: all when they and `room` new tokens (1 to half of the context) fit, else
  // fewer. `report`: something more was dropped. Input error where the tokens that are never dropped take
  // more than half of the context.
  std::vector<std::int32_t> fit(std::span<const std::int32_t> text, std::size_t room,
                                std::optional<OverflowReport>& report);
  // The same in the middle of an answer: `kept` is what the last fit() returned and the answer so far.
  std::optional<OverflowReport> shrink(std::vector<std::int32_t>& kept, std::size_t room);

  std::size_t n_dropped() const { return dropped_.size(); }
  std::size_t first() const { return first_; }  // where they were: the first tokens are never dropped
  void set_keep(std::size_t keep);              // OverflowOptions::keep; a change starts afresh
  void restart();

 private:
  OverflowOptions options_;
  std::size_t context_, first_ = 0;
  std::vector<std::int32_t> dropped_;  // text[first, first + n_dropped)
};

}  // namespace quern::engine
