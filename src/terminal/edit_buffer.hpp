// The text being edited and its cursor, with the operations of the emacs keys. UTF-8; the cursor stands
// between characters as people count them. Not here: keys, history, display.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quern::terminal {

class EditBuffer {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{4} << 20;  // what does not fit is not inserted

  const std::string& text() const { return text_; }
  std::size_t cursor() const { return cursor_; }
  void set(std::string text);  // cursor behind it
  void clear() { set({}); }

  void insert(std::string_view text);
  // Replaces [begin, cursor) by `text`: a completion.
  void replace_before(std::size_t begin, std::string_view text);
  void backspace();
  void delete_char();
  void transpose();

  void left();
  void right();
  void word_left();
  void word_right();
  void line_start();
  void line_end();
  void to_start() { cursor_ = 0; }
  void to_end() { cursor_ = text_.size(); }
  // To the line above or below, the same column; false on the first or last line.
  bool up();
  bool down();

  void kill_to_end();    // of the line; at its end the line end itself
  void kill_to_start();  // of the line
  void kill_word_left();
  void rubout_word();
  void kill_word_right();
  void yank();
  void yank_older();  // right after a yank: what was killed before
  void undo();

  // Every operation that is no kill ends the run of kills that are yanked together.
  void end_kill() { killing_ = false; }

 private:
  struct Step {
    std::string text;
    std::size_t cursor;
  };

  std::size_t start_of_line(std::size_t at) const;
  std::size_t end_of_line(std::size_t at) const;
  std::size_t word_start(bool to_space) const;
  std::size_t word_end() const;
  void kill(std::size_t begin, std::size_t end);
  void remember(bool typed);  // for undo; a run of typed characters is one step
  void to_column(std::size_t line, std::size_t column);

  std::string text_;
  std::size_t cursor_ = 0;
  std::vector<std::string> killed_;  // newest last
  std::vector<Step> steps_;
  bool killing_ = false, typing_ = false;
  std::size_t yank_begin_ = 0, yank_end_ = 0, yank_age_ = 0;  // of the last yank; equal: none
};

}  // namespace quern::terminal
