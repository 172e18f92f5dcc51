#include "base/temporary.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "base/temporary_table.hpp"

namespace quern::base {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kMark = ".quern-";
constexpr std::size_t kRandomChars = 6;
constexpr std::string_view kAlphabet = "0123456789abcdefghijklmnopqrstuvwxyz";
// A file name has at most 255 bytes; what is cut off only makes two long targets look for stale files together.
constexpr std::size_t kMaxNameBytes = 200;

std::string shown(const fs::path& path) { return printable(path.string()); }

std::string prefix_of(const fs::path& target) {
  return cat(".", target.filename().string().substr(0, kMaxNameBytes), kMark);
}

std::string random_chars() {
  unsigned char bytes[kRandomChars] = {};
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    environment_error("", "no random bytes", errno);
  std::string text;
  for (const unsigned char byte : bytes) text += kAlphabet[byte % kAlphabet.size()];
  return text;
}

bool is_temporary_of(std::string_view name, std::string_view prefix) {
  return name.size() == prefix.size() + kRandomChars && name.substr(0, prefix.size()) == prefix &&
         name.find_first_not_of(kAlphabet, prefix.size()) == std::string_view::npos;
}

// The open file is what the name still means.
bool same_file(int fd, const fs::path& path) {
  struct stat opened{}, named{};
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

// Removed when nobody holds its lock and it is ours to remove.
void remove_if_stale(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  struct stat status{};
  const bool ours = ::fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) &&
                    status.st_uid == ::geteuid();
  if (ours && ::flock(fd, LOCK_EX | LOCK_NB) == 0 && same_file(fd, path)) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  ::close(fd);
}

void remove_stale(const fs::path& target) {
  const std::string prefix = prefix_of(target);
  std::error_code error;
  for (fs::directory_iterator at(parent_of(target), error), end; !error && at != end; at.increment(error))
    if (is_temporary_of(at->path().filename().string(), prefix)) remove_if_stale(at->path());
}

bool unsupported(int error) { return error == EINVAL || error == ENOSYS; }

}  // namespace

void sync_directory(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) environment_error(shown(path), "cannot open directory", errno);
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  if (result != 0 && error != EINVAL) environment_error(shown(path), "cannot sync directory", error);
}

fs::path parent_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

fs::path without_trailing_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

Temporary::Temporary(const fs::path& target, Kind kind, unsigned mode)
    : target_(without_trailing_slash(target)), kind_(kind) {
  remove_stale(target_);
  for (int attempt = 0; attempt < 100; ++attempt) {
    path_ = parent_of(target_) / (prefix_of(target_) + random_chars());
    if (create(mode)) {
      owned_ = true;
      slot_ = enter_temporary(path_.c_str());
      return;
    }
  }
  environment_error(shown(parent_of(target_)), "cannot create a temporary name here");
}

bool Temporary::create(unsigned mode) {
  const bool file = kind_ == Kind::file;
  if (!file && ::mkdir(path_.c_str(), mode) != 0) {
    if (errno == EEXIST) return false;
    environment_error(shown(parent_of(path_)), "cannot create a directory here", errno);
  }
  const int flags = file ? O_RDWR | O_CREAT | O_EXCL : O_RDONLY | O_DIRECTORY;
  fd_ = ::open(path_.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd_ < 0) {
    const int error = errno;
    if (!file) ::rmdir(path_.c_str());
    if (error == (file ? EEXIST : ENOENT)) return false;
    environment_error(shown(parent_of(path_)), file ? "cannot create a file here" : "cannot open a directory made here",
                      error);
  }
  // Another process may take it for stale until it is locked: then that one removes it, and the next name is tried.
  const bool busy = ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (!busy && same_file(fd_, path_)) return true;
  ::close(fd_);
  fd_ = -1;
  return false;
}

Temporary::~Temporary() {
  if (owned_) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  leave_temporary(slot_);
  if (fd_ >= 0) ::close(fd_);
}

void Temporary::move(bool replace, bool& exchanged) {
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE) == 0) return;
  const bool taken = errno == EEXIST;
  struct stat status{};
  if (taken && kind_ == Kind::file && ::lstat(target_.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    environment_error(shown(target_), "is a directory");
  if (taken && replace) {
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) {
      exchanged = true;
      return;
    }
  }
  const int error = errno;
  // File systems without these flags: a plain rename replaces a file; a directory only where nothing is.
  const bool plain = kind_ == Kind::file ? replace : ::lstat(target_.c_str(), &status) != 0;
  if (unsupported(error) && plain && ::rename(path_.c_str(), target_.c_str()) == 0) return;
  environment_error(shown(target_), taken && replace ? "cannot be exchanged for the new one" : "cannot rename into place",
                    error);
}

void Temporary::undo(bool exchanged, const Error& cause) {
  const unsigned flags = exchanged ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  if (::renameat2(AT_FDCWD, target_.c_str(), AT_FDCWD, path_.c_str(), flags) == 0)
    throw Error(cause.code(), cause.where(),
                cat(cause.what_only(), exchanged ? "; the old " : "; no ", shown(target_), exchanged ? " is back" : " was made"));
  owned_ = false;  // nothing is removed
  leave_temporary(slot_);
  slot_ = -1;
  throw Error(cause.code(), cause.where(),
              cat(cause.what_only(), "; ", shown(target_), " is the new one, complete but perhaps not on the disk yet",
                  exchanged ? cat(", the old one is ", shown(path_)) : ""));
}

void Temporary::publish(bool replace) {
  // The old one will have the temporary's name for a moment: locked, so that nobody takes it for stale.
  const int old = ::open(target_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (old >= 0) static_cast<void>(::flock(old, LOCK_EX | LOCK_NB));
  struct Closer {
    int fd;
    ~Closer() {
      if (fd >= 0) ::close(fd);
    }
  } const closer{old};
  bool exchanged = false;
  move(replace, exchanged);
  try {
    sync_directory(parent_of(target_));
  } catch (const Error& error) {
    undo(exchanged, error);
  }
  if (exchanged) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  owned_ = false;
}

}  // namespace quern::base
