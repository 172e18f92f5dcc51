#include "engine/overflow.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::engine {

namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::string_view kPolicyNames[] = {"error", "truncate", "shift", "sinks"};

// Tokens between `first` and the end of a text of `n` that the policy drops at a time.
std::size_t step_of(OverflowPolicy policy, std::size_t n, std::size_t first, std::size_t context) {
  const std::size_t rest = n - first;
  if (policy == OverflowPolicy::shift) return (rest + 1) / 2;
  const std::size_t recent = (context - first) / 2;
  return rest > recent ? rest - recent : 0;
}

}  // namespace

std::optional<OverflowPolicy> overflow_policy_of(std::string_view word) {
  for (std::size_t i = 0; i < std::size(kPolicyNames); ++i)
    if (kPolicyNames[i] == word) return static_cast<OverflowPolicy>(i);
  return std::nullopt;
}

std::string_view overflow_policy_name(OverflowPolicy policy) {
  return kPolicyNames[static_cast<std::size_t>(policy)];
}

std::string overflow_text(const OverflowReport& report) {
  const std::size_t moved = report.n_kept - std::min(report.n_kept, report.first);
  std::string text = base::cat("context full: dropped ", report.n_new, " tokens");
  if (report.n_turns > 0)
    text += base::cat(" (the ", report.n_turns, report.n_turns == 1 ? " oldest turn" : " oldest turns", ")");
  text += base::cat(" from position ", report.first, " on");
  if (report.n_dropped > report.n_new) text += base::cat(", ", report.n_dropped, " in all");
  return text + base::cat("; the ", moved, " tokens behind them move to positions ", report.first, " to ",
                          report.n_kept == 0 ? 0 : report.n_kept - 1, " and are computed again");
}

TokenWindow::TokenWindow(const OverflowOptions& options, std::size_t context)
    : options_(options), context_(context) {
  set_keep(options.keep);
}

void TokenWindow::set_keep(std::size_t keep) {
  options_.keep = keep;
  const std::size_t first = options_.policy == OverflowPolicy::sinks ? options_.n_sinks : keep;
  if (first != first_) restart();
  first_ = first;
}

void TokenWindow::restart() {
  dropped_.clear();
}

// Drops from `kept` until it and `room` new tokens fit.
std::optional<OverflowReport> TokenWindow::shrink(Ids& kept, std::size_t room) {
  const std::size_t free = context_ - std::min(context_, first_);
  if (free < 2 || first_ > context_ / 2)
    base::reject("context", "the tokens that are never dropped leave less than half of the context",
                 base::cat(first_), base::cat("at most ", context_ / 2));
  room = std::clamp<std::size_t>(room, 1, free / 2);
  OverflowReport report{options_.policy, 0, first_, 0, 0, 0};
  while (kept.size() + room > context_) {
    const std::size_t n = step_of(options_.policy, kept.size(), first_, context_);
    const auto begin = kept.begin() + static_cast<std::ptrdiff_t>(first_);
    dropped_.insert(dropped_.end(), begin, begin + static_cast<std::ptrdiff_t>(n));
    kept.erase(begin, begin + static_cast<std::ptrdiff_t>(n));
    report.n_new += n;
  }
  if (report.n_new == 0) return std::nullopt;
  report.n_dropped = dropped_.size();
  report.n_kept = kept.size();
  return report;
}

Ids TokenWindow::fit(std::span<const std::int32_t> text, std::size_t room, std::optional<OverflowReport>& report) {
  report.reset();
  Ids kept(text.begin(), text.end());
  if (kept.size() + std::max<std::size_t>(room, 1) <= context_) {
    restart();
    return kept;
  }
  const bool same = text.size() > first_ + dropped_.size() &&
                    std::equal(dropped_.begin(), dropped_.end(), text.begin() + static_cast<std::ptrdiff_t>(first_));
  if (!same) restart();
  if (!dropped_.empty()) {
    const auto begin = kept.begin() + static_cast<std::ptrdiff_t>(first_);
    kept.erase(begin, begin + static_cast<std::ptrdiff_t>(dropped_.size()));
  }
  report = shrink(kept, room);
  return kept;
}

}  // namespace quern::engine
