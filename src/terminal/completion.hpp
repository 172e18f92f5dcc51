// What Tab may put in: the longest text that all candidates share, and the candidates of a path.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace quern::terminal {

struct Completion {
  std::size_t begin = 0;                // the candidates stand for text [begin, cursor)
  std::vector<std::string> candidates;  // in the order they are shown
  bool finish = true;  // a single candidate is whole: a space follows (not behind a directory's /)
};
using Completer = std::function<Completion(std::string_view text_before_cursor)>;

// Those of `words` that begin with `start`, sorted.
std::vector<std::string> matching(const std::vector<std::string>& words, std::string_view start);
// Longest common start, never half a character.
std::string common_start(const std::vector<std::string>& candidates);

// Files and directories (with a / at the end) whose path begins with `start`; "~/" is the home directory
// and stays as it is typed. Names that begin with a dot only when `start` does. At most kMaxPaths.
inline constexpr std::size_t kMaxPaths = 2000;
std::vector<std::string> matching_paths(std::string_view start);
// "~/x" with the home directory in place of ~.
std::string expand_home(std::string_view path);

}  // namespace quern::terminal
