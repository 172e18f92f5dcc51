#include "chat/context_fit.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::chat {

namespace {

using engine::OverflowPolicy;
using Ids = std::vector<std::int32_t>;

// Messages before the first turn.
std::size_t head_of(const std::vector<Message>& messages) {
  std::size_t n = 0;
  while (n < messages.size() && messages[n].role == "system") ++n;
  return n;
}

std::size_t common_prefix(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

[[noreturn]] void refuse(std::size_t n, std::size_t context) {
  base::reject("prompt", base::cat("the conversation has ", n, " tokens, context is ", context));
}

Ids joined(Ids ids, std::span<const std::int32_t> answer) {
  ids.insert(ids.end(), answer.begin(), answer.end());
  return ids;
}

}  // namespace

ContextFit::ContextFit(const engine::OverflowOptions& options, std::size_t context)
    : options_(options), context_(context), window_(options, context) {}

FitResult ContextFit::fit(const std::vector<Message>& messages, std::size_t room, const Render& render) {
  room = std::clamp<std::size_t>(room, 1, std::max<std::size_t>(context_ / 4, 1));
  if (options_.policy == OverflowPolicy::truncate) {
    FitResult result = truncate(messages, {}, room, render);
    if (result.ids.empty()) refuse(render(messages).size(), context_);
    return result;
  }
  FitResult result{render(messages), std::nullopt};
  if (options_.policy == OverflowPolicy::error) {
    if (result.ids.size() + 1 > context_) refuse(result.ids.size(), context_);
    return result;
  }
  result.ids = window_.fit(result.ids, room, result.report);
  return result;
}

FitResult ContextFit::fit_answer(const std::vector<Message>& messages, std::span<const std::int32_t> text,
                                 std::size_t n_answer, const Render& render) {
  QUERN_ASSERT(n_answer <= text.size());
  switch (options_.policy) {
    case OverflowPolicy::error: return {};
    case OverflowPolicy::truncate: return truncate(messages, text.last(n_answer), 1, render);
    case OverflowPolicy::shift:
    case OverflowPolicy::sinks: break;
  }
  FitResult result{{text.begin(), text.end()}, std::nullopt};
  result.report = window_.shrink(result.ids, 1);
  return result;
}

// Takes the oldest turn out of `kept`: a user's message and what answers it. False: only one is left.
bool ContextFit::drop_turn(std::vector<Message>& kept) {
  const auto first = kept.begin() + static_cast<std::ptrdiff_t>(head_of(kept));
  if (first == kept.end()) return false;
  const auto next = std::find_if(first + 1, kept.end(), [](const Message& m) { return m.role == "user"; });
  if (next == kept.end()) return false;
  dropped_.insert(dropped_.end(), first, next);
  kept.erase(first, next);
  return true;
}

// No ids: the last turn alone, or with the answer so far, does not fit.
FitResult ContextFit::truncate(const std::vector<Message>& messages, std::span<const std::int32_t> answer,
                               std::size_t room, const Render& render) {
  Ids all = joined(render(messages), answer);
  if (all.size() + room <= context_) {
    dropped_.clear();
    return {std::move(all), std::nullopt};
  }
  std::vector<Message> kept = messages;
  const auto first = static_cast<std::ptrdiff_t>(head_of(kept));
  const bool same = kept.size() > head_of(kept) + dropped_.size() &&
                    std::equal(dropped_.begin(), dropped_.end(), kept.begin() + first);
  if (!same) dropped_.clear();
  kept.erase(kept.begin() + first, kept.begin() + first + static_cast<std::ptrdiff_t>(dropped_.size()));
  Ids ids = dropped_.empty() ? all : joined(render(kept), answer);
  if (ids.size() + room <= context_) return {std::move(ids), std::nullopt};

  engine::OverflowReport report{OverflowPolicy::truncate, 0, 0, 0, 0, 0};
  const Ids before = ids;
  const std::size_t aim = context_ - std::max(room, context_ / 4);
  while (ids.size() > aim && drop_turn(kept)) {
    ids = joined(render(kept), answer);
    ++report.n_turns;
  }
  if (report.n_turns == 0 || ids.size() + room > context_) return {};
  report.first = common_prefix(before, ids);
  report.n_new = before.size() - std::min(before.size(), ids.size());
  report.n_dropped = all.size() - std::min(all.size(), ids.size());
  report.n_kept = ids.size();
  return {std::move(ids), report};
}

}  // namespace quern::chat
