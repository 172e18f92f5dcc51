#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "config_file.hpp"

namespace quern::tool {

namespace {

// One line while it is read.
class LineReader {
 public:
  LineReader(std::string_view line, std::string place) : rest_(line), place_(std::move(place)) { skip_space(); }

  bool at_end() const { return rest_.empty() || rest_.front() == '#'; }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    skip_space();
    return true;
  }
  std::string name() {  // of a section or key
    std::string out;
    while (!rest_.empty() && (std::isalnum(static_cast<unsigned char>(rest_.front())) != 0 || rest_.front() == '-' ||
                              rest_.front() == '_')) {
      out += rest_.front() == '_' ? '-' : rest_.front();
      rest_.remove_prefix(1);
    }
    skip_space();
    if (out.empty()) fail("a name of letters, digits and dashes");
    return out;
  }
  std::string value() {
    if (!take('[')) return scalar(false);
    std::string out;
    while (!take(']')) {
      if (!out.empty() && !take(',')) fail("a comma or ]");
      const std::string one = scalar(true);
      if (one.find(',') != std::string::npos) fail("list values without commas");
      out += (out.empty() ? "" : ",") + one;
    }
    return out;
  }
  [[noreturn]] void fail(std::string_view expected) const {
    base::reject(place_, "not a line of a configuration", base::printable(rest_.substr(0, 40)), expected);
  }

 private:
  void skip_space() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t' || rest_.front() == '\r')) rest_.remove_prefix(1);
  }
  std::string scalar(bool in_list) {
    if (rest_.empty()) fail("a value");
    if (rest_.front() == '"' || rest_.front() == '\'') return quoted(rest_.front());
    std::size_t end = 0;
    while (end < rest_.size() && rest_[end] != '#' && !(in_list && (rest_[end] == ',' || rest_[end] == ']'))) ++end;
    std::string out(rest_.substr(0, end));
    while (!out.empty() && (out.back() == ' ' || out.back() == '\t' || out.back() == '\r')) out.pop_back();
    if (out.empty()) fail("a value");
    rest_.remove_prefix(end);
    return out;
  }
  std::string quoted(char quote) {
    std::string out;
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == quote) {
        rest_.remove_prefix(i + 1);
        skip_space();
        return out;
      }
      if (rest_[i] != '\\' || quote == '\'') {
        out += rest_[i];
        continue;
      }
      const char escaped = ++i < rest_.size() ? rest_[i] : '\0';
      if (escaped == 'n') out += '\n';
      else if (escaped == 't') out += '\t';
      else if (escaped == '"' || escaped == '\\') out += escaped;
      else fail("\\n, \\t, \\\" or \\\\ after a backslash");
    }
    fail("the string's closing quote");
  }

  std::string_view rest_;
  std::string place_;
};

}  // namespace

std::vector<ConfigEntry> parse_config(std::string_view text, std::string_view where) {
  std::vector<ConfigEntry> entries;
  std::set<std::pair<std::string, std::string>> seen;
  std::string section;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string place = base::cat(where, ":", ++number);
    if (line.find('\0') != std::string_view::npos) base::reject(place, "a zero byte");
    LineReader reader(line, place);
    if (reader.at_end()) continue;
    if (reader.take('[')) {
      section = reader.name();
      if (!reader.take(']')) reader.fail("]");
    } else {
      ConfigEntry entry{section, reader.name(), {}, number};
      if (!reader.take('=')) reader.fail("key = value");
      entry.value = reader.value();
      if (!seen.emplace(section, entry.key).second) base::reject(place, "a key twice in one section", entry.key);
      entries.push_back(std::move(entry));
    }
    if (!reader.at_end()) reader.fail("the end of the line");
  }
  return entries;
}

}  // namespace quern::tool
