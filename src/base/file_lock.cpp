#include "base/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::base {

namespace fs = std::filesystem;

namespace {

// What the holder wrote into its lock: its process number.
std::string holder_of(int fd) {
  char text[24] = {};
  const ssize_t n = ::pread(fd, text, sizeof text - 1, 0);
  std::string digits;
  for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; ++i) digits += text[i];
  return digits.empty() ? "another process" : cat("process ", digits);
}

bool same_file(int fd, const fs::path& path) {
  struct stat opened{}, named{};
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

}  // namespace

FileLock::FileLock(const fs::path& path) {
  std::error_code error;
  const fs::path full = fs::weakly_canonical(fs::absolute(path, error), error);
  const fs::path target = error ? path : full;
  path_ = target.parent_path() / cat(".", target.filename().string(), ".lock");
  for (int attempt = 0; attempt < 100; ++attempt)
    if (take(target)) return;
  environment_error(printable(path.string()), "cannot be locked");
}

bool FileLock::take(const fs::path& target) {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (fd_ < 0) environment_error(printable(path_.string()), "cannot create", errno);
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    const std::string holder = holder_of(fd_);
    const bool gone = !same_file(fd_, path_);
    ::close(fd_);
    fd_ = -1;
    if (error != EWOULDBLOCK) return true;
    if (gone) return false;
    environment_error(printable(target.string()), cat("is in use by ", holder));
  }
  if (!same_file(fd_, path_)) {  // its last holder removed it while we waited
    ::close(fd_);
    fd_ = -1;
    return false;
  }
  const std::string holder = cat(::getpid(), "\n");
  static_cast<void>(::ftruncate(fd_, 0));
  static_cast<void>(::pwrite(fd_, holder.data(), holder.size(), 0));
  return true;
}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  ::unlink(path_.c_str());  // while it is held: who opened it before sees that it is gone
  ::close(fd_);
}

}  // namespace quern::base
