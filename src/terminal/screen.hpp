// Draws a prompt with the text being edited as terminal output: rows that are broken here and not by the
// terminal, so that the cursor's place is always known. Returns strings; writing them is the caller's.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quern::terminal {

struct View {
  std::string prompt;             // of the first row
  std::string continuation;       // of rows after a line end in the text
  std::string text;
  std::size_t cursor = 0;
  std::vector<std::string> below; // lines under the text: candidates of a completion
};

struct ScreenSize {
  std::size_t columns = 80, rows = 24;
};

struct Layout {
  std::vector<std::string> rows;
  std::vector<std::size_t> columns;  // of each row
  std::size_t cursor_row = 0, cursor_column = 0;
};
// At least one row. A row is at most `columns` wide; a full row before the cursor is followed by an
// empty one.
Layout lay_out(const View& view, std::size_t columns);

class Screen {
 public:
  explicit Screen(ScreenSize size) : size_(size) {}

  // Replaces what was drawn. Of more rows than the terminal has, those around the cursor.
  std::string draw(const View& view);
  // What was drawn stays, with the whole text and without `below`; the next row is free.
  std::string leave(View view);
  // What was drawn goes; the cursor stands where it began.
  std::string erase();
  std::string clear_all();  // the whole terminal; draw() follows

  // The terminal has another size: rows that it has broken anew are counted.
  void resize(ScreenSize size);

 private:
  ScreenSize size_;
  std::vector<std::size_t> drawn_;  // columns of the rows that are on the terminal
  std::size_t cursor_row_ = 0, cursor_column_ = 0;
};

}  // namespace quern::terminal
