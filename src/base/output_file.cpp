#include "base/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <vector>

namespace quern::base {

namespace fs = std::filesystem;

namespace {

std::string shown(const fs::path& path) { return printable(path.string()); }

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

// "dir/name/" and "dir/name" are the same target.
fs::path without_trailing_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

OutputFile::OutputFile(const fs::path& path, unsigned mode) : path_(path) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd_ < 0) environment_error(shown(path), "cannot create", errno);
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void OutputFile::write(Bytes bytes) {
  write_at(size_, bytes);
}

void OutputFile::write_at(std::uint64_t offset, Bytes bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::pwrite(fd_, bytes.data() + done, bytes.size() - done,
                               static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) environment_error(shown(path_), "cannot write", errno);
    done += static_cast<std::size_t>(n);
  }
  if (offset + bytes.size() > size_) size_ = offset + bytes.size();
}

void OutputFile::pad_to(std::uint64_t alignment) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  const std::uint64_t rest = size_ % alignment;
  if (rest == 0) return;
  for (std::uint64_t left = alignment - rest; left > 0;) {
    const std::uint64_t n = left < kZeros.size() ? left : kZeros.size();
    write(Bytes(kZeros).first(n));
    left -= n;
  }
}

void OutputFile::sync() {
  if (::fsync(fd_) != 0) environment_error(shown(path_), "cannot sync", errno);
}

OutputDirectory::OutputDirectory(const fs::path& target, bool exists_ok)
    : target_(without_trailing_slash(target)), exists_ok_(exists_ok) {
  struct stat status{};
  const bool exists = ::lstat(target_.c_str(), &status) == 0;
  if (exists && !exists_ok) usage_error(shown(target_), "already exists (use --force to replace it)");
  if (exists && !S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode))
    usage_error(shown(target_), "exists and is not a directory");
  std::string pattern = (parent_of(target_) / cat(".", target_.filename().string(), ".XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr)
    environment_error(shown(parent_of(target_)), "cannot create a directory here", errno);
  temporary_ = pattern;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::chmod(temporary_.c_str(), 0777 & ~mask);
}

OutputDirectory::~OutputDirectory() {
  if (published_) return;
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

void OutputDirectory::publish() {
  sync_directory(temporary_);
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE) != 0) {
    const int error = errno;
    if (error != EEXIST || !exists_ok_) environment_error(shown(target_), "cannot rename into place", error);
    struct stat status{};
    const bool link = ::lstat(target_.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
    if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) != 0)
      environment_error(shown(target_), "cannot exchange with the new directory", errno);
    std::error_code ignored;
    if (link) fs::remove(temporary_, ignored); else fs::remove_all(temporary_, ignored);
  }
  published_ = true;
  sync_directory(parent_of(target_));
}

namespace {

// What a chain of symbolic links ends at (perhaps a file that does not exist yet).
fs::path link_target(fs::path path) {
  for (int links = 0; links < 40; ++links) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(path, error))) return path;
    const fs::path next = fs::read_symlink(path, error);
    if (error) break;
    path = next.is_absolute() ? next : parent_of(path) / next;
  }
  environment_error(shown(path), "too many symbolic links");
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& target, Access access) : target_(link_target(target)) {
  if (!target_.has_filename() || fs::is_directory(target_)) environment_error(shown(target_), "is a directory");
  std::string pattern = (parent_of(target_) / cat(".", target_.filename().string(), ".XXXXXX")).string();
  const int fd = ::mkstemp(pattern.data());
  if (fd < 0) environment_error(shown(parent_of(target_)), "cannot create a file here", errno);
  ::close(fd);
  ::unlink(pattern.c_str());
  temporary_ = pattern;
  file_.emplace(temporary_, access == Access::owner_only ? 0600U : 0666U);
}

AtomicFile::~AtomicFile() {
  file_.reset();
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::publish() {
  file_->sync();
  file_.reset();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    environment_error(shown(target_), "cannot rename into place", errno);
  temporary_.clear();
  sync_directory(parent_of(target_));
}

void write_file_atomically(const fs::path& path, std::string_view text) {
  AtomicFile file(path, AtomicFile::Access::shared);
  file.file().write(as_bytes(text));
  file.publish();
}

std::uint64_t free_bytes(const fs::path& path) {
  struct statvfs status{};
  if (::statvfs(parent_of(path).c_str(), &status) != 0)
    environment_error(shown(path), "cannot ask for free space", errno);
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

}  // namespace quern::base
