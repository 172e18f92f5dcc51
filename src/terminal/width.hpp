// How text looks on a terminal: columns of a character, what stands for one that must not be written as
// it is, and the units a cursor moves by.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quern::terminal {

// The character at `at` (< text.size(), not \n) when it is written in `column`.
struct Cell {
  std::string shown;     // safe: control and direction-changing characters and broken bytes as \xNN
  std::size_t columns;   // 0 for a mark that joins the character before it
  std::size_t bytes;     // of the text
};
Cell cell_at(std::string_view text, std::size_t at, std::size_t column);

// Columns of one line of text that starts in column 0.
std::size_t columns_of(std::string_view line);

// Ends of what a person takes for one character (an extended grapheme cluster): the next one after `at`
// and the one before it. 0 and text.size() are ends.
std::size_t next_character(std::string_view text, std::size_t at);
std::size_t previous_character(std::string_view text, std::size_t at);

// One line that says as much of `text` as fits in `columns`, "..." behind what was cut.
std::string fit_columns(std::string_view text, std::size_t columns);

}  // namespace quern::terminal
