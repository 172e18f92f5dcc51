#include "terminal/width.hpp"

#include <utf8proc.h>

#include <algorithm>

#include "base/strings.hpp"
#include "text/unicode.hpp"

namespace quern::terminal {

namespace {

constexpr std::size_t kTabColumns = 4;

}  // namespace

Cell cell_at(std::string_view text, std::size_t at, std::size_t column) {
  if (text[at] == '\t') {
    const std::size_t columns = kTabColumns - column % kTabColumns;
    return {std::string(columns, ' '), columns, 1};
  }
  const text::Char c = text::decode_char(text, at);
  const std::string_view piece = text.substr(at, c.bytes);
  std::string shown = base::printable(piece, SIZE_MAX);
  if (shown != piece) return {shown, shown.size(), c.bytes};
  const int width = utf8proc_charwidth(static_cast<utf8proc_int32_t>(c.code));
  return {std::move(shown), static_cast<std::size_t>(std::max(width, 0)), c.bytes};
}

std::size_t columns_of(std::string_view line) {
  std::size_t column = 0;
  for (std::size_t at = 0; at < line.size();) {
    const Cell cell = cell_at(line, at, column);
    column += cell.columns;
    at += cell.bytes;
  }
  return column;
}

std::size_t next_character(std::string_view text, std::size_t at) {
  if (at >= text.size()) return text.size();
  text::Char c = text::decode_char(text, at);
  utf8proc_int32_t state = 0;
  for (std::size_t next = at + c.bytes; next < text.size(); next += c.bytes) {
    const text::Char following = text::decode_char(text, next);
    if (c.code == text::Char::kInvalid || following.code == text::Char::kInvalid) return next;
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(c.code),
                                         static_cast<utf8proc_int32_t>(following.code), &state))
      return next;
    c = following;
  }
  return text.size();
}

std::size_t previous_character(std::string_view text, std::size_t at) {
  at = std::min(at, text.size());
  if (at == 0) return 0;
  // No cluster contains a line end, so the line of `at` is far enough to look back.
  if (text[at - 1] == '\n') return at - 1;
  const std::size_t line_end = text.rfind('\n', at - 1);
  std::size_t start = line_end == std::string_view::npos ? 0 : line_end + 1;
  while (true) {
    const std::size_t next = next_character(text, start);
    if (next >= at) return start;
    start = next;
  }
}

std::string fit_columns(std::string_view text, std::size_t columns) {
  const std::string_view line = text.substr(0, text.find('\n'));
  if (line.size() == text.size() && columns_of(line) <= columns) {
    std::string out;
    for (std::size_t at = 0, column = 0; at < line.size();) {
      const Cell cell = cell_at(line, at, column);
      out += cell.shown;
      column += cell.columns;
      at += cell.bytes;
    }
    return out;
  }
  std::string out;
  const std::size_t room = columns < 3 ? 0 : columns - 3;
  for (std::size_t at = 0, column = 0; at < line.size();) {
    const Cell cell = cell_at(line, at, column);
    if (column + cell.columns > room) break;
    out += cell.shown;
    column += cell.columns;
    at += cell.bytes;
  }
  return out + std::string(std::min<std::size_t>(columns, 3), '.');
}

}  // namespace quern::terminal
