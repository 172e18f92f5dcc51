#include "chat/channel_stream.hpp"

#include <algorithm>
#include <utility>

namespace quern::chat {

namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kStart = "<|start|>", kChannel = "<|channel|>", kMessage = "<|message|>";
constexpr std::string_view kConstrain = "<|constrain|>", kEnd = "<|end|>";
// What can stand behind the text of a message.
constexpr std::string_view kBehind[] = {kEnd, "<|return|>", "<|call|>", kStart, kChannel, kMessage};
// A header has a role, a channel, a recipient and a type; what is longer is none.
constexpr std::size_t kLongestHeader = 512;

bool begins_some(std::string_view text, std::string_view mark) {
  return text.size() < mark.size() && mark.starts_with(text);
}

// The word behind <|channel|>; "" for a header without.
std::string_view channel_of(std::string_view header) {
  const std::size_t at = header.find(kChannel);
  if (at == std::string_view::npos) return {};
  std::string_view name = header.substr(at + kChannel.size());
  name.remove_prefix(std::min(name.find_first_not_of(kSpace), name.size()));
  return name.substr(0, name.find_first_of(" \t\r\n<"));
}

}  // namespace

bool ChannelStream::is_mark(std::string_view spelling) {
  return spelling == kConstrain || std::find(std::begin(kBehind), std::end(kBehind), spelling) != std::end(kBehind);
}

std::vector<AnswerPiece> ChannelStream::push(std::string_view text) {
  if (over_) return {};
  held_ += text;
  std::vector<AnswerPiece> out;
  while (!held_.empty() && step(out)) {
  }
  return out;
}

// One move; false when more text is needed.
bool ChannelStream::step(std::vector<AnswerPiece>& out) {
  switch (state_) {
    case State::start:
    case State::between: return before_message();
    case State::header: return inside_header(out);
    case State::body: return inside_body(out);
  }
  return false;
}

void ChannelStream::begin_body(bool thought, bool marked) {
  state_ = State::body;
  thought_ = thought;
  marked_ = marked;
  begun_ = final_ = false;
}

bool ChannelStream::before_message() {
  const std::size_t space = std::min(held_.find_first_not_of(kSpace), held_.size());
  const std::string_view rest = std::string_view(held_).substr(space);
  for (const std::string_view mark : {kStart, kChannel, kMessage}) {
    if (begins_some(rest, mark)) return false;
    if (!rest.starts_with(mark)) continue;
    held_.erase(0, space);
    state_ = State::header;
    return true;
  }
  begin_body(false, state_ == State::between);  // text without a header
  return true;
}

bool ChannelStream::inside_header(std::vector<AnswerPiece>& out) {
  const std::size_t end = held_.find(kMessage);
  if (end == std::string::npos) {
    if (held_.size() <= kLongestHeader) return false;
    begin_body(false, true);
    add(out, std::exchange(held_, {}));
    return false;
  }
  std::string header = held_.substr(0, end + kMessage.size());
  held_.erase(0, header.size());
  begin_body(channel_of(header) == "analysis", true);
  final_ = channel_of(header) == "final";
  if (header.find(" to=") != std::string::npos) {
    thought_ = false;
    add(out, std::move(header));
  }
  return true;
}

// Text of the body's kind, apart from the last one of its kind.
void ChannelStream::add(std::vector<AnswerPiece>& out, std::string text) {
  if (text.empty()) return;
  if (!begun_ && any_[thought_]) text.insert(0, "\n\n");
  begun_ = any_[thought_] = true;
  add_piece(out, thought_, std::move(text));
}

// A mark that begins the next message stays.
void ChannelStream::end_body(std::string_view mark) {
  state_ = State::between;
  if (mark == kStart || mark == kChannel || mark == kMessage) return;
  held_.erase(0, mark.size());
  over_ = final_ || mark != kEnd;
}

bool ChannelStream::inside_body(std::vector<AnswerPiece>& out) {
  if (!begun_ && marked_) held_.erase(0, std::min(held_.find_first_not_of(thought_ ? kSpace : "\r\n"), held_.size()));
  std::size_t end = std::string::npos, begun = 0;
  std::string_view found;
  for (const std::string_view mark : kBehind) {
    begun = std::max(begun, begun_mark(held_, mark));
    const std::size_t at = held_.find(mark);
    if (at >= end) continue;
    end = at;
    found = mark;
  }
  const std::size_t ready = end != std::string::npos ? end : held_.size() - begun;
  // White space at the end of a thought waits: it may belong to the mark behind it.
  const std::size_t last = thought_ && ready > 0 ? held_.find_last_not_of(kSpace, ready - 1) + 1 : ready;
  add(out, held_.substr(0, last));
  held_.erase(0, end == std::string::npos ? last : end);
  if (end == std::string::npos) return false;
  end_body(found);
  return !over_;
}

std::vector<AnswerPiece> ChannelStream::finish() {
  std::vector<AnswerPiece> out;
  if (over_) return out;
  if (state_ == State::start && !held_.empty()) begin_body(false, false);
  if (state_ == State::body) {
    if (thought_) held_.erase(held_.find_last_not_of(kSpace) + 1);
    add(out, std::exchange(held_, {}));
  }
  held_.clear();  // a header that was cut
  return out;
}

}  // namespace quern::chat
