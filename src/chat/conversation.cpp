#include "chat/conversation.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::chat {

namespace {

// `more`, which nobody vouches for, behind `text`.
void append_untrusted(base::MarkedText& text, std::string_view more) {
  if (more.empty()) return;
  const std::size_t begin = text.text.size(), end = begin + more.size();
  text.text += more;
  if (!text.untrusted.empty() && text.untrusted.back().end == begin)
    text.untrusted.back().end = end;
  else
    text.untrusted.push_back({begin, end});
}

void check_number(std::size_t n, std::size_t lowest, std::size_t n_messages) {
  if (n >= lowest && n <= n_messages) return;
  if (n_messages == 0) base::reject("message", "the conversation has none", base::cat(n));
  base::reject("message", "no such message", base::cat(n), base::cat(lowest, " to ", n_messages));
}

}  // namespace

void Conversation::cut_spans(std::size_t n) {
  spans_.resize(std::min(spans_.size(), n));
}

void Conversation::add(Message message) {
  messages_.push_back(std::move(message));
  cut_spans(messages_.size() - 1);
}

void Conversation::append(std::string_view content, std::string_view reasoning) {
  QUERN_ASSERT(!messages_.empty() && messages_.back().role == "assistant");
  Message& last = messages_.back();
  append_untrusted(last.content, content);
  if (!reasoning.empty() && !last.reasoning_content) last.reasoning_content.emplace();
  if (last.reasoning_content) append_untrusted(*last.reasoning_content, reasoning);
  cut_spans(messages_.size() - 1);
}

const Message* Conversation::system() const {
  return !messages_.empty() && messages_.front().role == "system" ? &messages_.front() : nullptr;
}

void Conversation::set_system(std::string content) {
  if (system() != nullptr) messages_.erase(messages_.begin());
  if (!content.empty()) messages_.insert(messages_.begin(), message("system", std::move(content)));
  cut_spans(0);
}

void Conversation::edit(std::size_t n, std::string content) {
  check_number(n, 1, messages_.size());
  messages_[n - 1] = message(std::move(messages_[n - 1].role), std::move(content));
  cut_spans(n - 1);
}

void Conversation::erase(std::size_t n) {
  check_number(n, 1, messages_.size());
  messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(n - 1));
  cut_spans(n - 1);
}

std::size_t Conversation::last_of_user(std::string_view wanted_for) const {
  for (std::size_t n = messages_.size(); n > 0; --n)
    if (messages_[n - 1].role == "user") return n - 1;
  base::usage_error(wanted_for, "the conversation has no message of the user");
}

std::string Conversation::undo() {
  const std::size_t index = last_of_user("undo");
  std::string content = std::move(messages_[index].content.text);
  keep_first(index);
  return content;
}

void Conversation::regenerate() {
  keep_first(last_of_user("regenerate") + 1);
}

void Conversation::keep_first(std::size_t n) {
  check_number(n, 0, messages_.size());
  messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(n), messages_.end());
  cut_spans(n);
}

Conversation Conversation::branch(std::size_t n) const {
  Conversation copy = *this;
  copy.keep_first(n);
  return copy;
}

void Conversation::clear(bool keep_system) {
  keep_first(keep_system && system() != nullptr ? 1 : 0);
}

void Conversation::set_spans(std::vector<TokenSpan> spans) {
  QUERN_ASSERT(spans.size() <= messages_.size());
  spans_ = std::move(spans);
}

std::optional<TokenSpan> Conversation::span(std::size_t index) const {
  if (index >= spans_.size()) return std::nullopt;
  return spans_[index];
}

}  // namespace quern::chat
