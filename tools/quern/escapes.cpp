#include "escapes.hpp"

#include <algorithm>

#include "model_options.hpp"

namespace quern::tool {

std::string unescaped(std::string_view text) {
  constexpr std::string_view kLetters = "ntr\"'\\", kMeant = "\n\t\r\"'\\";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t which =
        text[i] == '\\' && i + 1 < text.size() ? kLetters.find(text[i + 1]) : std::string_view::npos;
    if (which != std::string_view::npos) ++i;
    out += which == std::string_view::npos ? text[i] : kMeant[which];
  }
  return out;
}

std::vector<std::string> read_text_lines(const std::string& path) {
  const std::string text = read_input(path);
  std::string_view rest = text;
  std::vector<std::string> lines;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back(unescaped(line));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

}  // namespace quern::tool
