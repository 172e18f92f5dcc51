#include "base/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

namespace quern::base {

namespace fs = std::filesystem;

namespace {

std::string shown(const fs::path& path) { return printable(path.string()); }

}  // namespace

OutputFile::OutputFile(const fs::path& path, unsigned mode) : path_(path) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd_ < 0) environment_error(shown(path), "cannot create", errno);
}

OutputFile::OutputFile(int fd, const fs::path& path, Order order) : path_(path), fd_(fd), order_(order) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void OutputFile::write(Bytes bytes) {
  write_at(size_, bytes);
}

void OutputFile::write_at(std::uint64_t offset, Bytes bytes) {
  const bool appends = order_ == Order::appends;
  if (appends && offset != size_) environment_error(shown(path_), "is not a regular file");
  for (std::size_t done = 0; done < bytes.size();) {
    const std::size_t left = bytes.size() - done;
    const ssize_t n = appends ? ::write(fd_, bytes.data() + done, left)
                              : ::pwrite(fd_, bytes.data() + done, left, static_cast<off_t>(offset + done));
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

namespace {

bool is_link(const fs::path& path) {
  std::error_code error;
  return fs::is_symlink(fs::symlink_status(path, error));
}

// /dev/stdout and /dev/fd/N lead to /proc/PID/fd/N, a link that names a file but means a descriptor: what a shell
// has opened with > or >> is written into, never replaced.
bool is_descriptor(const fs::path& path) {
  std::error_code error;
  const std::string parent = fs::canonical(parent_of(path), error).string();
  return !error && parent.rfind("/proc/", 0) == 0;
}

// What a chain of symbolic links ends at (perhaps a file that does not exist yet).
fs::path link_target(fs::path path) {
  for (int links = 0; links < 40; ++links) {
    if (!is_link(path) || is_descriptor(path)) return path;
    std::error_code error;
    const fs::path next = fs::read_symlink(path, error);
    if (error) break;
    path = next.is_absolute() ? next : parent_of(path) / next;
  }
  environment_error(shown(path), "too many symbolic links");
}

// A pipe, a device, a descriptor: what is written into, not replaced.
bool is_stream(const fs::path& target) {
  struct stat status{};
  if (::stat(target.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return false;
  return !S_ISREG(status.st_mode) || (is_link(target) && is_descriptor(target));
}

int open_stream(const fs::path& target) {
  const std::string name = target.filename().string();
  int number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  std::error_code ignored;
  const bool own = error == std::errc() && end == name.data() + name.size() &&
                   fs::equivalent(parent_of(target), "/proc/self/fd", ignored);
  // Opened again, a file behind a descriptor would be written from its start, whatever >> had asked for.
  const int fd = own ? ::fcntl(number, F_DUPFD_CLOEXEC, 3) : ::open(target.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) environment_error(shown(target), "cannot open for writing", errno);
  return fd;
}

// An existing file keeps its permissions when others may see it anyway.
void copy_mode(const fs::path& from, int fd) {
  struct stat status{};
  if (::stat(from.c_str(), &status) == 0) static_cast<void>(::fchmod(fd, status.st_mode & 0777));
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& target, Access access) {
  const fs::path end = link_target(target);
  if (!end.has_filename() || fs::is_directory(end)) environment_error(shown(end), "is a directory");
  if (is_stream(end)) {
    if (access == Access::owner_only) environment_error(shown(target), "is not a regular file");
    file_.emplace(open_stream(end), target, OutputFile::Order::appends);
    return;
  }
  temporary_.emplace(end, Temporary::Kind::file, access == Access::owner_only ? 0600U : 0666U);
  if (access == Access::shared) copy_mode(end, temporary_->descriptor());
  const int fd = ::fcntl(temporary_->descriptor(), F_DUPFD_CLOEXEC, 3);
  if (fd < 0) environment_error(shown(end), "cannot create", errno);
  file_.emplace(fd, end, OutputFile::Order::any);
}

void AtomicFile::publish() {
  if (!temporary_) return;
  file_->sync();
  file_.reset();
  temporary_->publish(true);
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
