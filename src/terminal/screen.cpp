#include "terminal/screen.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "terminal/width.hpp"

namespace quern::terminal {

namespace {

constexpr std::size_t kLeastColumns = 8;
constexpr std::string_view kClearBelow = "\x1b[J";

std::string up(std::size_t n) { return n == 0 ? std::string() : base::cat("\x1b[", n, "A"); }
std::string right(std::size_t n) { return n == 0 ? std::string() : base::cat("\x1b[", n, "C"); }

class Rows {
 public:
  explicit Rows(std::size_t width) : width_(width) { next(); }

  void next() {
    layout.rows.emplace_back();
    layout.columns.push_back(0);
  }
  std::size_t& column() { return layout.columns.back(); }

  void put(const Cell& cell) {
    if (cell.columns > 2) {  // an escape or a tab: may be broken anywhere
      for (const char c : cell.shown) put({std::string(1, c), 1, 0});
      return;
    }
    if (column() + cell.columns > width_) next();
    layout.rows.back() += cell.shown;
    column() += cell.columns;
  }
  // A prompt: at most half of the width, so that there is room to type.
  void put_prompt(std::string_view prompt) {
    const std::string shown = fit_columns(prompt, std::max<std::size_t>(width_ / 2, 4));
    layout.rows.back() += shown;
    column() += columns_of(shown);
  }
  void mark_cursor() {
    if (column() >= width_) next();
    layout.cursor_row = layout.rows.size() - 1;
    layout.cursor_column = column();
  }

  Layout layout;

 private:
  std::size_t width_;
};

}  // namespace

Layout lay_out(const View& view, std::size_t columns) {
  Rows rows(std::max(columns, kLeastColumns));
  rows.put_prompt(view.prompt);
  const std::string_view text = view.text;
  std::size_t line_column = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (at == view.cursor) rows.mark_cursor();
    if (text[at] == '\n') {
      rows.next();
      rows.put_prompt(view.continuation);
      line_column = 0;
      ++at;
      continue;
    }
    const Cell cell = cell_at(text, at, line_column);
    rows.put(cell);
    line_column += cell.columns;
    at += cell.bytes;
  }
  if (view.cursor >= text.size()) rows.mark_cursor();
  return std::move(rows.layout);
}

std::string Screen::erase() {
  std::string out = "\r" + up(cursor_row_) + std::string(kClearBelow);
  drawn_.clear();
  cursor_row_ = cursor_column_ = 0;
  return out;
}

std::string Screen::draw(const View& view) {
  std::string out = erase();
  Layout layout = lay_out(view, size_.columns);
  for (const std::string& line : view.below) {
    layout.rows.push_back(fit_columns(line, std::max(size_.columns, kLeastColumns)));
    layout.columns.push_back(columns_of(layout.rows.back()));
  }
  const std::size_t most = std::max<std::size_t>(size_.rows, 2) - 1;
  std::size_t first = 0, end = layout.rows.size();
  if (end > most) {
    first = std::min(layout.cursor_row - std::min(layout.cursor_row, most / 2), end - most);
    end = first + most;
  }
  for (std::size_t row = first; row < end; ++row) {
    if (row > first) out += "\r\n";
    out += layout.rows[row];
    drawn_.push_back(layout.columns[row]);
  }
  cursor_row_ = layout.cursor_row - first;
  cursor_column_ = layout.cursor_column;
  return out + "\r" + up(drawn_.size() - 1 - cursor_row_) + right(cursor_column_);
}

std::string Screen::leave(View view) {
  view.below.clear();
  view.cursor = view.text.size();
  std::string out = erase();
  const Layout layout = lay_out(view, size_.columns);
  for (std::size_t row = 0; row < layout.rows.size(); ++row) {
    // The empty row that only held the cursor behind a full one is not kept.
    if (row > 0 && row + 1 == layout.rows.size() && layout.rows[row].empty() && !view.text.ends_with('\n')) break;
    out += layout.rows[row] + "\r\n";
  }
  return out;
}

std::string Screen::clear_all() {
  drawn_.clear();
  cursor_row_ = cursor_column_ = 0;
  return "\x1b[H\x1b[2J";
}

void Screen::resize(ScreenSize size) {
  if (size.columns != 0 && size.columns < size_.columns) {
    // A narrower terminal breaks each row it holds into several.
    const auto broken = [&](std::size_t n) { return n == 0 ? 0 : (n - 1) / size.columns; };
    std::size_t row = cursor_row_ + cursor_column_ / size.columns;
    for (std::size_t i = 0; i < cursor_row_ && i < drawn_.size(); ++i) row += broken(drawn_[i]);
    cursor_row_ = row;
  }
  if (size.columns != 0) size_.columns = size.columns;
  if (size.rows != 0) size_.rows = size.rows;
}

}  // namespace quern::terminal
