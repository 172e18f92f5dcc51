#include "terminal/message_text.hpp"

#include <algorithm>

namespace quern::terminal {

namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr std::string_view kBlank = " \t\n";

std::string_view trimmed_end(std::string_view text) {
  const std::size_t last = text.find_last_not_of(kBlank);
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

std::string_view trimmed_start(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kBlank), text.size()));
}

bool looks_like_command(std::string_view text) { return text.starts_with('/') && !text.starts_with("//"); }

// Where a block opens: at the start, or behind the first word of a command.
std::size_t opening(std::string_view text) {
  const std::size_t start = std::min(text.find_first_not_of(kBlank), text.size());
  if (text.substr(start).starts_with(kQuotes)) return start;
  if (!looks_like_command(text)) return std::string_view::npos;
  const std::size_t found = text.find(kQuotes);
  if (found == std::string_view::npos || text.substr(0, found).find('\n') != std::string_view::npos)
    return std::string_view::npos;
  return found > 0 && (text[found - 1] == ' ' || text[found - 1] == '\t') ? found : std::string_view::npos;
}

bool closed(std::string_view text, std::size_t open) {
  const std::string_view rest = trimmed_end(text.substr(open + kQuotes.size()));
  return rest.ends_with(kQuotes);
}

// An odd number of \ at the end.
bool continues(std::string_view text) {
  const std::size_t last = text.find_last_not_of('\\');
  const std::size_t n = text.size() - (last == std::string_view::npos ? 0 : last + 1);
  return n % 2 == 1;
}

// What lies between the quotes, without the line ends that only hold them.
std::string block_text(std::string_view text, std::size_t open) {
  std::string_view inside = text.substr(open + kQuotes.size());
  if (closed(text, open)) {
    inside = trimmed_end(inside);
    inside.remove_suffix(kQuotes.size());
  }
  if (inside.starts_with('\n')) inside.remove_prefix(1);
  if (inside.ends_with('\n')) inside.remove_suffix(1);
  return std::string(inside);
}

// A \ before a line end goes.
std::string joined(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (continues(line)) line.remove_suffix(1);
    out += line;
    if (end == text.size()) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace

bool is_complete(std::string_view typed, LineMode mode) {
  const std::size_t open = opening(typed);
  if (open != std::string_view::npos) return closed(typed, open);
  const bool marked = continues(typed);
  if (mode == LineMode::single) return !marked;
  const bool command = looks_like_command(typed) && typed.find('\n') == std::string_view::npos;
  return marked || command;
}

Typed finished(std::string_view typed, LineMode mode) {
  const std::size_t open = opening(typed);
  if (open != std::string_view::npos) {
    const std::string text = block_text(typed, open);
    if (!looks_like_command(typed)) return {false, text};
    const std::string_view word = trimmed_end(typed.substr(0, open));
    return {true, std::string(word) + ' ' + text};
  }
  const bool has_lines = typed.find('\n') != std::string_view::npos;
  // The mark that sends is no part of the text; a literal \ before a line end stays in multi mode.
  std::string text(typed);
  if (mode == LineMode::single)
    text = joined(typed);
  else if (continues(typed))
    text.pop_back();
  if (looks_like_command(text) && !has_lines) return {true, std::string(trimmed_end(text))};
  if (text.starts_with("//")) text.erase(0, 1);
  if (trimmed_start(text).empty()) text.clear();
  return {false, text};
}

}  // namespace quern::terminal
