// Bytes of a keyboard -> what they ask for: emacs keys, cursor keys, UTF-8 characters, bracketed paste.
// A state machine without a terminal: reading bytes and asking for the paste brackets is the caller's.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quern::terminal {

enum class Action {
  insert,  // KeyEvent::text, one character
  paste,   // KeyEvent::text, any text; line ends are \n, other control characters are gone
  accept,
  newline,
  backspace,
  delete_char,
  delete_or_leave,
  left,
  right,
  word_left,
  word_right,
  line_start,
  line_end,
  up,
  down,
  history_first,
  history_last,
  history_previous,
  history_next,
  search_back,
  kill_to_end,
  kill_to_start,
  kill_word_left,   // to white space
  rubout_word,      // to the start of a word of letters
  kill_word_right,
  yank,
  yank_older,
  transpose,
  undo,
  complete,
  open_editor,
  clear_screen,
  interrupt,
  suspend,
  escape,
};

struct KeyEvent {
  Action action;
  std::string text;
};

class KeyDecoder {
 public:
  // A paste beyond this is cut; what is cut is not taken for keys either.
  static constexpr std::size_t kMaxPasteBytes = std::size_t{4} << 20;

  std::vector<KeyEvent> push(std::string_view bytes);
  // An escape byte has come and nothing after it: after a short wait it is the Escape key itself.
  bool half_escape() const { return state_ == State::escape; }
  std::vector<KeyEvent> escape_timeout();

 private:
  enum class State { plain, escape, control_sequence, single_shift, paste };

  void plain(char byte);
  void after_escape(char byte);
  void sequence(char byte);
  void finish_sequence(char final);
  void pasted(char byte);
  void character(char byte);
  void emit(Action action, std::string text = {}) { events_.push_back({action, std::move(text)}); }

  State state_ = State::plain;
  std::string pending_;  // a character, the parameters of a sequence, or a paste
  std::size_t needed_ = 0;  // bytes of the character in pending_
  std::vector<KeyEvent> events_;
};

}  // namespace quern::terminal
