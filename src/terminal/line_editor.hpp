// The line editor as a state machine: keys in, a text and what to draw out. Knows history, search in it
// and completion; knows no terminal (screen.hpp draws, the tool reads and writes).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "terminal/completion.hpp"
#include "terminal/edit_buffer.hpp"
#include "terminal/history.hpp"
#include "terminal/keys.hpp"
#include "terminal/message_text.hpp"
#include "terminal/screen.hpp"

namespace quern::terminal {

enum class Outcome {
  editing,      // draw() again
  accepted,     // text() is whole
  cleared,      // Ctrl-C: the line is gone; on an empty line nothing was there
  leave,        // Ctrl-D on an empty line
  open_editor,  // the text goes through an editor of the user's
  suspend,
  clear_screen,
};

class LineEditor {
 public:
  LineEditor(const History& history, Completer completer, LineMode mode)
      : history_(history), completer_(std::move(completer)), mode_(mode) {}

  Outcome key(const KeyEvent& event);

  const std::string& text() const { return buffer_.text(); }
  void set_text(std::string text);  // cursor behind it; history begins at its end again
  // As set_text, on the empty line of a new message.
  void restart(std::string text = {});

  View view(const std::string& prompt, const std::string& continuation) const;

 private:
  struct Search {
    std::string query, original;
    std::size_t age = 0;  // entries back from the newest
    bool failed = false;
  };

  Outcome edit(const KeyEvent& event);
  Outcome accept();
  void move(Action action);
  void walk(Action action);
  void kill(Action action);
  void go_to(std::size_t age);
  void complete();
  std::optional<Outcome> search_key(const KeyEvent& event);
  void search(std::size_t from_age);

  const History& history_;
  Completer completer_;
  LineMode mode_;
  EditBuffer buffer_;
  std::size_t age_ = 0;  // 0: the text of one's own, n: the n-th newest entry
  std::string draft_;    // the text of one's own, while an entry is shown
  std::optional<Search> search_;
  std::vector<std::string> candidates_;
};

}  // namespace quern::terminal
