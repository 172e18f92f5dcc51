#include "chat/thought_stream.hpp"

#include <algorithm>
#include <utility>

namespace quern::chat {

namespace {

constexpr std::string_view kSpace = " \t\r\n";

}  // namespace

std::size_t begun_mark(std::string_view text, std::string_view mark) {
  if (mark.empty()) return 0;
  for (std::size_t n = std::min(text.size(), mark.size() - 1); n > 0; --n)
    if (text.ends_with(mark.substr(0, n))) return n;
  return 0;
}

bool ThoughtMarks::has(std::string_view spelling) const {
  if (spelling.empty()) return false;
  return open.find(spelling) != std::string::npos || close.find(spelling) != std::string::npos ||
         (channels && ChannelStream::is_mark(spelling));
}

ThoughtStream::ThoughtStream(ThoughtMarks marks, bool opened)
    : marks_(std::move(marks)),
      state_(marks_.close.empty() ? State::answer : opened ? State::thought : State::start) {
  if (marks_.channels) channels_.emplace(opened);
}

std::vector<AnswerPiece> ThoughtStream::push(std::string_view text) {
  if (channels_) return channels_->push(text);
  held_ += text;
  std::vector<AnswerPiece> out;
  while (!held_.empty() && step(out)) {
  }
  return out;
}

// One move of the state machine; false when more text is needed.
bool ThoughtStream::step(std::vector<AnswerPiece>& out) {
  switch (state_) {
    case State::start: return at_start(false);
    case State::thought: return inside_thought(out);
    case State::answer_start: {
      const std::size_t first = held_.find_first_not_of("\r\n");
      held_.erase(0, first);
      if (first == std::string::npos) return false;
      state_ = State::answer;
      return true;
    }
    case State::answer: add_piece(out, false, std::exchange(held_, {})); return false;
  }
  return false;
}

// Whether a mark stands first. last: nothing will follow that could complete one.
bool ThoughtStream::at_start(bool last) {
  const std::size_t space = std::min(held_.find_first_not_of(kSpace), held_.size());
  const std::string_view rest = std::string_view(held_).substr(space);
  if (!marks_.open.empty()) {
    if (rest.starts_with(marks_.open)) {
      state_ = State::thought;
      held_.erase(0, space + marks_.open.size());
      return true;
    }
    if (!last && marks_.open.starts_with(rest)) return false;
  }
  state_ = State::answer;
  return true;
}

// Drops what stands before a thought's first word; false when more text is needed.
bool ThoughtStream::before_thought() {
  held_.erase(0, std::min(held_.find_first_not_of(kSpace), held_.size()));
  // A thought may open with the mark that its prompt wrote already.
  while (!marks_.open.empty() && held_.starts_with(marks_.open)) {
    held_.erase(0, marks_.open.size());
    held_.erase(0, std::min(held_.find_first_not_of(kSpace), held_.size()));
  }
  return !held_.empty() && !marks_.open.starts_with(held_);
}

bool ThoughtStream::inside_thought(std::vector<AnswerPiece>& out) {
  if (!begun_ && !before_thought()) return false;
  const std::size_t end = held_.find(marks_.close);
  const std::size_t ready = end != std::string::npos ? end : held_.size() - begun_mark(held_, marks_.close);
  // White space at the end waits: it may belong to the closing mark.
  const std::size_t last = ready == 0 ? std::string::npos : held_.find_last_not_of(kSpace, ready - 1);
  const std::size_t shown = last == std::string::npos ? 0 : last + 1;
  add_piece(out, true, held_.substr(0, shown));
  begun_ = begun_ || shown > 0;
  if (end == std::string::npos) {
    held_.erase(0, shown);
    return false;
  }
  held_.erase(0, end + marks_.close.size());
  state_ = State::answer_start;
  return true;
}

std::vector<AnswerPiece> ThoughtStream::finish() {
  if (channels_) return channels_->finish();
  std::vector<AnswerPiece> out;
  if (state_ == State::start && !held_.empty()) {
    at_start(true);
    while (!held_.empty() && step(out)) {
    }
  }
  if (state_ == State::thought) {
    held_.erase(held_.find_last_not_of(kSpace) + 1);
    add_piece(out, true, std::exchange(held_, {}));
  }
  held_.clear();
  return out;
}

}  // namespace quern::chat
