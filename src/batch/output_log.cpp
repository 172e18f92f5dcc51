#include "batch/output_log.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/output_file.hpp"
#include "base/strings.hpp"
#include "base/temporary.hpp"

namespace quern::batch {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kSyncTime{2};
constexpr std::size_t kMaxManifestBytes = std::size_t{64} << 20;
constexpr std::size_t kCopyBytes = std::size_t{64} << 10;

std::string shown(const fs::path& path) { return base::printable(path.string()); }

// The process that holds a lock on this file, as the kernel lists it; 0 when it does not say.
long lock_holder(const struct stat& info) {
  std::ifstream locks("/proc/locks");
  const std::string inode = base::cat(":", info.st_ino);
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access, file;
    long pid = 0;
    if (words >> number >> kind >> mode >> access >> pid >> file && kind == "FLOCK" && file.ends_with(inode) && pid > 0)
      return pid;
  }
  return 0;
}

// /dev/stdout and /dev/fd/N lead to /proc/PID/fd/N: what a shell opened with > is written into as it comes.
bool is_descriptor(fs::path path) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(path, error))) path = fs::read_symlink(path, error);
  return fs::canonical(base::parent_of(path), error).string().starts_with("/proc/");
}

void refuse_input(const fs::path& path, const InputFile& input, const std::string& what) {
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0 && input.is(info.st_dev, info.st_ino))
    base::usage_error("-o", base::cat(what, " ", shown(path), " is the input itself"));
}

void write_all(int fd, std::string_view bytes, const fs::path& path) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EPIPE) throw ClosedPipe(shown(path));
    if (n < 0) base::environment_error(shown(path), "cannot write", errno);
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace

fs::path manifest_path(const fs::path& output) { return output.string() + ".manifest"; }
fs::path torn_path(const fs::path& output) { return output.string() + ".torn"; }

OutputLog::OutputLog(const fs::path& path, Existing existing, const InputFile& input, std::size_t sync_lines)
    : path_(path), name_(shown(path)), sync_lines_(sync_lines) {
  struct stat info{};
  const bool standard = path == "-";
  const bool there = standard ? ::fstat(1, &info) == 0 : ::stat(path.c_str(), &info) == 0;
  stream_ = standard || (there && !S_ISREG(info.st_mode)) || is_descriptor(path);
  if (standard) name_ = "standard output";
  last_sync_ = std::chrono::steady_clock::now();
  if (there && input.is(info.st_dev, info.st_ino)) base::usage_error("-o", base::cat(name_, " is the input itself"));
  if (!stream_) {
    open_regular(existing, input);
    return;
  }
  if (existing == Existing::resume) base::usage_error("--resume", base::cat(name_, " is no regular file"));
  if (there && S_ISDIR(info.st_mode)) base::environment_error(name_, "is a directory");
  fd_ = Descriptor(standard ? ::dup(1) : ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd_.valid()) base::environment_error(name_, "cannot open for writing", errno);
}

void OutputLog::open_regular(Existing existing, const InputFile& input) {
  refuse_input(manifest_path(path_), input, "the manifest");
  refuse_input(torn_path(path_), input, "the file for a torn end");
  fd_ = Descriptor(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  created_ = fd_.valid();
  if (!created_ && errno == EEXIST) fd_ = Descriptor(::open(path_.c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  if (!fd_.valid()) base::environment_error(name_, "cannot open for writing", errno);
  lock();
  struct stat info{};
  if (::fstat(fd_, &info) != 0) base::environment_error(name_, "cannot look at", errno);
  if (!S_ISREG(info.st_mode)) base::environment_error(name_, "is no regular file any more");
  if (input.is(info.st_dev, info.st_ino)) base::usage_error("-o", base::cat(name_, " is the input itself"));
  size_ = static_cast<std::uint64_t>(info.st_size);
  if (size_ > 0 && existing == Existing::refuse)
    base::usage_error("-o", base::cat(name_, " exists: add --resume to go on with it, --overwrite to begin anew"));
  if (::faccessat(AT_FDCWD, base::parent_of(path_).c_str(), W_OK, AT_EACCESS) != 0)
    base::environment_error(shown(base::parent_of(path_)), "cannot write the manifest of the output there", errno);
  if (size_ == 0 || existing != Existing::resume) return;
  const fs::path manifest = manifest_path(path_);
  std::error_code ignored;
  if (!fs::exists(manifest, ignored))
    base::reject(name_, base::cat("has lines, but no manifest ", shown(manifest)), {},
                 "an output of quern batch (or --overwrite)");
  stored_ = parse_manifest(base::read_text_file(manifest, kMaxManifestBytes), shown(manifest));
}

OutputLog::~OutputLog() {
  if (created_ && !begun_) ::unlink(path_.c_str());
}

// An flock goes with its process, however that dies. The name must still be this file's: the one that was locked
// could have been removed or replaced in between.
void OutputLog::lock() {
  struct stat info{}, named{};
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    const long holder = ::fstat(fd_, &info) == 0 ? lock_holder(info) : 0;
    created_ = false;
    if (error == EWOULDBLOCK && holder != 0) base::environment_error(name_, base::cat("locked by pid ", holder));
    if (error == EWOULDBLOCK) base::environment_error(name_, "locked by another process");
    base::environment_error(name_, "cannot lock", error);
  }
  if (::fstat(fd_, &info) != 0 || ::stat(path_.c_str(), &named) != 0 || info.st_ino != named.st_ino ||
      info.st_dev != named.st_dev) {
    created_ = false;
    base::environment_error(name_, "was removed or replaced by another process");
  }
}

void OutputLog::write_manifest(const Manifest& manifest, const SyncState& sync) {
  const fs::path path = manifest_path(path_);
  const std::string text = manifest_text(manifest, sync);
  base::write_file_atomically(path, text);
  sync_offset_ = text.size() - sync_line(sync).size();
  manifest_fd_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!manifest_fd_.valid()) base::environment_error(shown(path), "cannot open", errno);
}

// Not synced itself: it says less than the truth until it reaches the disk, which costs nothing but work.
void OutputLog::record_sync(const SyncState& sync) {
  const std::string line = sync_line(sync);
  ssize_t n = 0;
  do n = ::pwrite(manifest_fd_, line.data(), line.size(), static_cast<off_t>(sync_offset_));
  while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(line.size()))
    base::environment_error(shown(manifest_path(path_)), "cannot write", n < 0 ? errno : 0);
}

void OutputLog::begin(const Manifest& manifest) {
  begun_ = true;
  if (stream_) return;
  // The old lines go first: lines of one run beside the manifest of another would be taken for its own.
  if (size_ > 0 && ::ftruncate(fd_, 0) != 0) base::environment_error(name_, "cannot truncate", errno);
  size_ = 0;
  write_manifest(manifest, {});
}

void OutputLog::keep_torn(std::uint64_t offset, std::uint64_t n_bytes) const {
  const fs::path path = torn_path(path_);
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) base::environment_error(shown(path), "cannot open for writing", errno);
  base::OutputFile owner(fd, path, base::OutputFile::Order::appends);
  std::string block(kCopyBytes, '\0');
  for (std::uint64_t done = 0; done < n_bytes;) {
    const ssize_t n = ::pread(fd_, block.data(), std::min<std::uint64_t>(block.size(), n_bytes - done),
                              static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) base::environment_error(name_, "cannot read", n < 0 ? errno : 0);
    owner.write(base::as_bytes(std::string_view(block).substr(0, static_cast<std::size_t>(n))));
    done += static_cast<std::uint64_t>(n);
  }
  owner.write(base::as_bytes("\n"));
  owner.sync();
}

void OutputLog::begin_resumed(const Manifest& manifest, const OutputScan& scan) {
  begun_ = true;
  if (scan.torn_bytes > 0) {
    keep_torn(scan.good_bytes, scan.torn_bytes);
    if (::ftruncate(fd_, static_cast<off_t>(scan.good_bytes)) != 0)
      base::environment_error(name_, "cannot cut the torn end off", errno);
  }
  size_ = synced_ = scan.good_bytes;
  // What was read may be in memory only (a killed run); when this sync fails, what an earlier one vouched for counts.
  if (::fsync(fd_) != 0) {
    const int error = errno;
    manifest_fd_ = Descriptor(::open(manifest_path(path_).c_str(), O_WRONLY | O_CLOEXEC));
    sync_offset_ = stored_->sync_offset;
    record_sync({std::min(stored_->sync.synced_bytes, size_), true});
    base::environment_error(name_, "cannot sync", error);
  }
  write_manifest(manifest, {size_, false});
}

void OutputLog::append(std::string_view line) {
  if (stream_) return write_all(fd_, line, name_);
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = ::write(fd_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      // Whole lines only; where even this fails, the next run finds a torn end.
      if (done > 0 && ::ftruncate(fd_, static_cast<off_t>(size_)) != 0) done = 0;
      base::environment_error(name_, "cannot write", error);
    }
    done += static_cast<std::size_t>(n);
  }
  size_ += line.size();
  ++n_unsynced_;
}

void OutputLog::sync_if_due() {
  if (stream_ || n_unsynced_ == 0) return;
  if (n_unsynced_ >= sync_lines_ || std::chrono::steady_clock::now() - last_sync_ >= kSyncTime) sync();
}

void OutputLog::sync() {
  last_sync_ = std::chrono::steady_clock::now();
  if (stream_ || n_unsynced_ == 0) return;
  if (::fsync(fd_) != 0) {
    // The kernel may have dropped the pages and forgotten the error: no later sync can be believed.
    const int error = errno;
    const std::size_t unsure = n_unsynced_;
    n_unsynced_ = 0;
    std::string note = base::cat("cannot sync; ", unsure, " lines since the last good sync are unsure, --resume does them again");
    try {
      record_sync({synced_, true});
    } catch (const base::Error&) {
      if (::ftruncate(fd_, static_cast<off_t>(synced_)) == 0)
        note = base::cat("cannot sync; ", unsure, " lines since the last good sync were removed, --resume does them again");
    }
    base::environment_error(name_, note, error);
  }
  synced_ = size_;
  n_unsynced_ = 0;
  record_sync({synced_, false});
}

}  // namespace quern::batch
