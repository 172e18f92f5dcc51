#include "terminal/edit_buffer.hpp"

#include <algorithm>
#include <utility>

#include "terminal/width.hpp"
#include "text/unicode.hpp"

namespace quern::terminal {

namespace {

constexpr std::size_t kMaxKilled = 16, kMaxSteps = 200;
constexpr std::size_t kMaxStepBytes = 65536;  // a longer text is not remembered at every key

bool is_word_at(std::string_view text, std::size_t at) {
  const text::Char c = text::decode_char(text, at);
  return c.code != text::Char::kInvalid && text::is_word_code(c.code);
}

bool is_space_at(std::string_view text, std::size_t at) {
  return text[at] == ' ' || text[at] == '\t' || text[at] == '\n';
}

}  // namespace

void EditBuffer::set(std::string text) {
  text_ = std::move(text);
  cursor_ = text_.size();
  steps_.clear();
  killing_ = typing_ = false;
  yank_begin_ = yank_end_ = 0;
}

void EditBuffer::remember(bool typed) {
  yank_begin_ = yank_end_ = 0;
  if (typed && typing_) return;
  typing_ = typed;
  if (text_.size() > kMaxStepBytes) return;
  if (steps_.size() == kMaxSteps) steps_.erase(steps_.begin());
  steps_.push_back({text_, cursor_});
}

void EditBuffer::undo() {
  if (steps_.empty()) return;
  text_ = std::move(steps_.back().text);
  cursor_ = steps_.back().cursor;
  steps_.pop_back();
  typing_ = false;
}

void EditBuffer::insert(std::string_view text) {
  if (text.size() > kMaxBytes - std::min(kMaxBytes, text_.size())) return;
  remember(text.size() <= 4 && text != " ");
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void EditBuffer::replace_before(std::size_t begin, std::string_view text) {
  remember(false);
  text_.replace(begin, cursor_ - begin, text);
  cursor_ = begin + text.size();
}

void EditBuffer::backspace() {
  if (cursor_ == 0) return;
  remember(false);
  const std::size_t begin = previous_character(text_, cursor_);
  text_.erase(begin, cursor_ - begin);
  cursor_ = begin;
}

void EditBuffer::delete_char() {
  if (cursor_ == text_.size()) return;
  remember(false);
  text_.erase(cursor_, next_character(text_, cursor_) - cursor_);
}

// Swaps the characters around the cursor, at the end of the line the last two.
void EditBuffer::transpose() {
  const std::size_t start = start_of_line(cursor_);
  std::size_t middle = cursor_ == end_of_line(cursor_) ? previous_character(text_, cursor_) : cursor_;
  if (middle <= start || middle >= end_of_line(cursor_)) return;
  remember(false);
  const std::size_t begin = previous_character(text_, middle), end = next_character(text_, middle);
  std::rotate(text_.begin() + static_cast<std::ptrdiff_t>(begin), text_.begin() + static_cast<std::ptrdiff_t>(middle),
              text_.begin() + static_cast<std::ptrdiff_t>(end));
  cursor_ = end;
}

void EditBuffer::left() { cursor_ = previous_character(text_, cursor_); }
void EditBuffer::right() { cursor_ = next_character(text_, cursor_); }

std::size_t EditBuffer::start_of_line(std::size_t at) const {
  const std::size_t line_end = at == 0 ? std::string::npos : text_.rfind('\n', at - 1);
  return line_end == std::string::npos ? 0 : line_end + 1;
}

std::size_t EditBuffer::end_of_line(std::size_t at) const { return std::min(text_.find('\n', at), text_.size()); }

void EditBuffer::line_start() { cursor_ = start_of_line(cursor_); }
void EditBuffer::line_end() { cursor_ = end_of_line(cursor_); }

std::size_t EditBuffer::word_start(bool to_space) const {
  const auto inside = [&](std::size_t at) { return to_space ? !is_space_at(text_, at) : is_word_at(text_, at); };
  std::size_t at = cursor_;
  for (bool found = false; at > 0;) {
    const std::size_t before = previous_character(text_, at);
    if (found && !inside(before)) break;
    found = found || inside(before);
    at = before;
  }
  return at;
}

std::size_t EditBuffer::word_end() const {
  std::size_t at = cursor_;
  for (bool found = false; at < text_.size(); at = next_character(text_, at)) {
    if (found && !is_word_at(text_, at)) break;
    found = found || is_word_at(text_, at);
  }
  return at;
}

void EditBuffer::word_left() { cursor_ = word_start(false); }
void EditBuffer::word_right() { cursor_ = word_end(); }

void EditBuffer::to_column(std::size_t line, std::size_t column) {
  cursor_ = line;
  const std::size_t end = end_of_line(line);
  for (std::size_t at = 0; cursor_ < end;) {
    const Cell cell = cell_at(text_, cursor_, at);
    if (at + cell.columns > column) break;
    at += cell.columns;
    cursor_ = next_character(text_, cursor_);
  }
}

bool EditBuffer::up() {
  const std::size_t start = start_of_line(cursor_);
  if (start == 0) return false;
  to_column(start_of_line(start - 1), columns_of(std::string_view(text_).substr(start, cursor_ - start)));
  return true;
}

bool EditBuffer::down() {
  const std::size_t start = start_of_line(cursor_), end = end_of_line(cursor_);
  if (end == text_.size()) return false;
  to_column(end + 1, columns_of(std::string_view(text_).substr(start, cursor_ - start)));
  return true;
}

void EditBuffer::kill(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  remember(false);
  const std::string piece = text_.substr(begin, end - begin);
  if (!killing_) {
    if (killed_.size() == kMaxKilled) killed_.erase(killed_.begin());
    killed_.push_back(piece);
  } else {
    std::string& last = killed_.back();
    last = end <= cursor_ ? piece + last : last + piece;
  }
  killing_ = true;
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

void EditBuffer::kill_to_end() {
  const std::size_t end = end_of_line(cursor_);
  kill(cursor_, end == cursor_ ? std::min(end + 1, text_.size()) : end);
}
void EditBuffer::kill_to_start() { kill(start_of_line(cursor_), cursor_); }
void EditBuffer::kill_word_left() { kill(word_start(true), cursor_); }
void EditBuffer::rubout_word() { kill(word_start(false), cursor_); }
void EditBuffer::kill_word_right() { kill(cursor_, word_end()); }

void EditBuffer::yank() {
  if (killed_.empty()) return;
  const std::size_t begin = cursor_;
  insert(killed_.back());
  yank_begin_ = begin;
  yank_end_ = cursor_;
  yank_age_ = 0;
}

void EditBuffer::yank_older() {
  if (yank_begin_ == yank_end_ || cursor_ != yank_end_) return;
  const std::size_t begin = yank_begin_, age = (yank_age_ + 1) % killed_.size();
  replace_before(begin, killed_[killed_.size() - 1 - age]);
  yank_begin_ = begin;
  yank_end_ = cursor_;
  yank_age_ = age;
}

}  // namespace quern::terminal
