#include "terminal/history.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "base/strings.hpp"
#include "text/stream_decoder.hpp"

namespace quern::terminal {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;

// False for a line with an escape that History::escaped() does not write.
bool unescape(std::string_view line, std::string& entry) {
  entry.clear();
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      entry += line[i];
    } else if (++i < line.size() && (line[i] == '\\' || line[i] == 'n')) {
      entry += line[i] == 'n' ? '\n' : '\\';
    } else {
      return false;
    }
  }
  return text::utf8_lossy(entry) == entry;
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

// The end of the file, at most kMaxFileBytes of it; "" when there is none. Never waits on a FIFO.
std::string read_tail(const fs::path& path) {
  const std::string where = base::printable(path.string());
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  if (file.fd < 0 && errno == ENOENT) return {};
  struct stat status{};
  if (file.fd < 0 || ::fstat(file.fd, &status) != 0) base::environment_error(where, "cannot read", errno);
  if (!S_ISREG(status.st_mode)) base::environment_error(where, "the history is not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  std::size_t at = size - std::min(size, kMaxFileBytes);
  std::string text;
  std::array<char, 65536> chunk{};
  while (true) {
    const ssize_t n = ::pread(file.fd, chunk.data(), chunk.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) base::environment_error(where, "cannot read", errno);
    if (n == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(n));
    at += static_cast<std::size_t>(n);
    if (text.size() > 2 * kMaxFileBytes) return text;
  }
}

}  // namespace

bool History::add(std::string_view entry) {
  if (entry.size() > kMaxEntryBytes || entry.find_first_not_of(" \t\n") == std::string_view::npos) return false;
  if (!entries_.empty() && entries_.back() == entry) return false;
  std::string kept(entry);
  entries_.erase(std::remove(entries_.begin(), entries_.end(), kept), entries_.end());
  if (entries_.size() == kMaxEntries) entries_.erase(entries_.begin());
  entries_.push_back(std::move(kept));
  return true;
}

void History::read(std::string_view file_text) {
  std::vector<std::string> read;
  std::string entry;
  while (!file_text.empty()) {
    const std::size_t end = std::min(file_text.find('\n'), file_text.size());
    if (unescape(file_text.substr(0, end), entry)) read.push_back(entry);
    file_text.remove_prefix(std::min(end + 1, file_text.size()));
  }
  // add() looks through all it has: only what can still be there at the end is added.
  const std::size_t first = read.size() - std::min(read.size(), 2 * kMaxEntries);
  for (std::size_t i = first; i < read.size(); ++i) add(read[i]);
}

std::string History::escaped(std::string_view entry) {
  std::string line;
  for (const char c : entry) {
    if (c == '\n')
      line += "\\n";
    else if (c == '\\')
      line += "\\\\";
    else
      line += c;
  }
  return line + '\n';
}

std::string History::write() const {
  std::string text;
  for (const std::string& entry : entries_) text += escaped(entry);
  return text;
}

HistoryFile::HistoryFile(fs::path path, History& history) : path_(std::move(path)) {
  const std::string text = read_tail(path_);
  history.read(text);
  const auto n_lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  if (n_lines <= 2 * History::kMaxEntries) return;
  base::write_file_atomically(path_, history.write());
  ::chmod(path_.c_str(), 0600);
}

void HistoryFile::append(std::string_view entry) const {
  const std::string where = base::printable(path_.string());
  std::error_code error;
  fs::create_directories(path_.parent_path(), error);
  const Descriptor file{::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0600)};
  if (file.fd < 0) base::environment_error(where, "cannot write the history", errno);
  const std::string line = History::escaped(entry);
  ssize_t n = 0;
  do n = ::write(file.fd, line.data(), line.size());
  while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(line.size())) base::environment_error(where, "cannot write the history", errno);
}

fs::path default_history_path() {
  // Relative values of XDG variables are to be ignored (XDG base directory specification).
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && state[0] == '/')
    return fs::path(state) / "quern" / "history";
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return {};
  return fs::path(home) / ".local" / "state" / "quern" / "history";
}

}  // namespace quern::terminal
