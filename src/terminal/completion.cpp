#include "terminal/completion.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace quern::terminal {

namespace fs = std::filesystem;

std::vector<std::string> matching(const std::vector<std::string>& words, std::string_view start) {
  std::vector<std::string> found;
  for (const std::string& word : words)
    if (word.starts_with(start)) found.push_back(word);
  std::sort(found.begin(), found.end());
  return found;
}

std::string common_start(const std::vector<std::string>& candidates) {
  if (candidates.empty()) return {};
  std::size_t length = candidates.front().size();
  for (const std::string& candidate : candidates) {
    length = std::min(length, candidate.size());
    const auto differs = std::mismatch(candidate.begin(), candidate.begin() + static_cast<std::ptrdiff_t>(length),
                                       candidates.front().begin());
    length = static_cast<std::size_t>(differs.first - candidate.begin());
  }
  const std::string& first = candidates.front();
  while (length > 0 && length < first.size() && (static_cast<unsigned char>(first[length]) & 0xC0u) == 0x80u) --length;
  return first.substr(0, length);
}

std::string expand_home(std::string_view path) {
  const char* home = std::getenv("HOME");
  if (home == nullptr || (path != "~" && !path.starts_with("~/"))) return std::string(path);
  return std::string(home) + std::string(path.substr(1));
}

std::vector<std::string> matching_paths(std::string_view start) {
  const std::size_t slash = start.rfind('/');
  const std::string_view directory = slash == std::string_view::npos ? "" : start.substr(0, slash + 1);
  const std::string_view name = start.substr(directory.size());
  std::vector<std::string> found;
  std::error_code error;
  const fs::path place = directory.empty() ? fs::path(".") : fs::path(expand_home(directory));
  for (fs::directory_iterator entry(place, error), end; !error && entry != end; entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    if (!file.starts_with(name) || (file.starts_with('.') && !name.starts_with('.'))) continue;
    std::error_code unknown;
    found.push_back(std::string(directory) + file + (entry->is_directory(unknown) ? "/" : ""));
    if (found.size() == kMaxPaths) break;
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace quern::terminal
