#include "terminal/line_editor.hpp"

#include <algorithm>
#include <utility>

#include "base/strings.hpp"
#include "terminal/width.hpp"

namespace quern::terminal {

namespace {

constexpr std::size_t kMaxShownCandidates = 60;

}  // namespace

void LineEditor::set_text(std::string text) {
  buffer_.set(std::move(text));
  age_ = 0;
  search_.reset();
  candidates_.clear();
}

void LineEditor::restart(std::string text) {
  set_text(std::move(text));
  draft_.clear();
}

Outcome LineEditor::key(const KeyEvent& event) {
  candidates_.clear();
  if (search_)
    if (const std::optional<Outcome> outcome = search_key(event)) return *outcome;
  return edit(event);
}

Outcome LineEditor::edit(const KeyEvent& event) {
  kill(event.action);
  switch (event.action) {
    case Action::insert: case Action::paste: buffer_.insert(event.text); break;
    case Action::newline: buffer_.insert("\n"); break;
    case Action::accept: return accept();
    case Action::backspace: buffer_.backspace(); break;
    case Action::delete_char: buffer_.delete_char(); break;
    case Action::delete_or_leave:
      if (buffer_.text().empty()) return Outcome::leave;
      buffer_.delete_char();
      break;
    case Action::yank: buffer_.yank(); break;
    case Action::yank_older: buffer_.yank_older(); break;
    case Action::transpose: buffer_.transpose(); break;
    case Action::undo: buffer_.undo(); break;
    case Action::complete: complete(); break;
    case Action::search_back: search_ = Search{{}, buffer_.text(), 0, false}; break;
    case Action::open_editor: return Outcome::open_editor;
    case Action::clear_screen: return Outcome::clear_screen;
    case Action::interrupt: return Outcome::cleared;
    case Action::suspend: return Outcome::suspend;
    default: move(event.action); walk(event.action); break;
  }
  return Outcome::editing;
}

Outcome LineEditor::accept() {
  if (is_complete(buffer_.text(), mode_)) return Outcome::accepted;
  buffer_.to_end();
  buffer_.insert("\n");
  return Outcome::editing;
}

void LineEditor::move(Action action) {
  switch (action) {
    case Action::left: buffer_.left(); break;
    case Action::right: buffer_.right(); break;
    case Action::word_left: buffer_.word_left(); break;
    case Action::word_right: buffer_.word_right(); break;
    case Action::line_start: buffer_.line_start(); break;
    case Action::line_end: buffer_.line_end(); break;
    default: break;
  }
}

void LineEditor::walk(Action action) {
  switch (action) {
    case Action::up:
      if (!buffer_.up()) go_to(age_ + 1);
      break;
    case Action::down:
      if (!buffer_.down() && age_ > 0) go_to(age_ - 1);
      break;
    case Action::history_previous: go_to(age_ + 1); break;
    case Action::history_next:
      if (age_ > 0) go_to(age_ - 1);
      break;
    case Action::history_first: go_to(history_.entries().size()); break;
    case Action::history_last: go_to(0); break;
    default: break;
  }
}

void LineEditor::kill(Action action) {
  switch (action) {
    case Action::kill_to_end: buffer_.kill_to_end(); break;
    case Action::kill_to_start: buffer_.kill_to_start(); break;
    case Action::kill_word_left: buffer_.kill_word_left(); break;
    case Action::rubout_word: buffer_.rubout_word(); break;
    case Action::kill_word_right: buffer_.kill_word_right(); break;
    default: buffer_.end_kill(); break;
  }
}

void LineEditor::go_to(std::size_t age) {
  if (age > history_.entries().size() || age == age_) return;
  if (age_ == 0) draft_ = buffer_.text();
  age_ = age;
  buffer_.set(age == 0 ? draft_ : history_.entries()[history_.entries().size() - age]);
}

void LineEditor::complete() {
  if (!completer_) return;
  const std::string before = buffer_.text().substr(0, buffer_.cursor());
  const Completion found = completer_(before);
  if (found.candidates.empty() || found.begin > before.size()) return;
  std::string text = common_start(found.candidates);
  if (text.size() < before.size() - found.begin) return;
  const bool single = found.candidates.size() == 1;
  if (single && found.finish && !text.ends_with('/')) text += ' ';
  if (text != before.substr(found.begin))
    buffer_.replace_before(found.begin, text);
  else if (!single)
    candidates_ = found.candidates;
}

// A key while searching; none: the search is over and the key acts on the text found.
std::optional<Outcome> LineEditor::search_key(const KeyEvent& event) {
  Search& s = *search_;
  switch (event.action) {
    case Action::insert:
      s.query += event.text;
      search(std::max<std::size_t>(s.age, 1));
      return Outcome::editing;
    case Action::backspace:
      s.query.resize(previous_character(s.query, s.query.size()));
      search(1);
      return Outcome::editing;
    case Action::search_back: search(s.age + 1); return Outcome::editing;
    case Action::interrupt: case Action::open_editor:  // Ctrl-G
      set_text(s.original);
      return Outcome::editing;
    case Action::escape: search_.reset(); return Outcome::editing;
    default: search_.reset(); return std::nullopt;
  }
}

// The newest entry with the query in it, at least `from_age` entries back.
void LineEditor::search(std::size_t from_age) {
  Search& s = *search_;
  const std::vector<std::string>& entries = history_.entries();
  s.failed = !s.query.empty();
  for (std::size_t age = from_age; !s.query.empty() && age <= entries.size(); ++age) {
    const std::string& entry = entries[entries.size() - age];
    if (entry.find(s.query) == std::string::npos) continue;
    s.age = age;
    s.failed = false;
    buffer_.set(entry);
    return;
  }
}

View LineEditor::view(const std::string& prompt, const std::string& continuation) const {
  View view{prompt, continuation, buffer_.text(), buffer_.cursor(), {}};
  if (search_)
    view.prompt = base::cat(search_->failed ? "(no match) " : "(search) ", "'", search_->query, "': ");
  for (const std::string& candidate : candidates_) {
    if (view.below.size() == kMaxShownCandidates) {
      view.below.push_back(base::cat("... ", candidates_.size() - kMaxShownCandidates, " more"));
      break;
    }
    view.below.push_back(candidate);
  }
  return view;
}

}  // namespace quern::terminal
