// Small text helpers: concatenation (C++20 of gcc 12 has no std::format), safe display, nearest word.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace quern::base {

// Concatenates anything that streams: cat("row ", 3, " of ", n).
template <class... Args>
std::string cat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

// Text of a file or a user made safe for one line of a terminal: control bytes and invalid UTF-8 as
// \xNN, cut after max_bytes with "...".
std::string printable(std::string_view text, std::size_t max_bytes = 200);

// The candidate with the smallest edit distance to `word`, or "" when none is near (> 1/3 differs).
std::string nearest(std::string_view word, const std::vector<std::string_view>& candidates);

// "a, b, c"
std::string join(const std::vector<std::string_view>& words, std::string_view separator = ", ");

// 1234567 -> "1,234,567"
std::string grouped(unsigned long long value);

// 1536 -> "1.50 KiB"
std::string human_bytes(unsigned long long bytes);

}  // namespace quern::base
