#include "batch/line_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/strings.hpp"

namespace quern::batch {

namespace {

constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
constexpr std::string_view kMark = "\xEF\xBB\xBF";  // byte order mark

std::int64_t nanoseconds(const struct stat& info) {
  return std::int64_t{info.st_mtim.tv_sec} * 1000000000 + info.st_mtim.tv_nsec;
}

// A file without a name, gone with its descriptor.
int unnamed_file() {
  const char* const folder = std::getenv("TMPDIR");
  const std::string where = folder != nullptr && *folder != '\0' ? folder : "/tmp";
  const int fd = ::open(where.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  std::string name = where + "/quern-batch-XXXXXX";
  const int other = ::mkostemp(name.data(), O_CLOEXEC);
  if (other < 0) base::environment_error(base::printable(where), "cannot create a temporary file for the input", errno);
  ::unlink(name.c_str());
  return other;
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  const bool standard = path == "-";
  name_ = standard ? "standard input" : base::printable(path.string());
  fd_ = Descriptor(standard ? ::dup(0) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd_.valid()) base::reject(name_, base::cat("cannot open: ", std::strerror(errno)));
  struct stat info{};
  if (::fstat(fd_, &info) != 0) base::environment_error(name_, "cannot look at", errno);
  if (S_ISDIR(info.st_mode)) base::reject(name_, "is a directory");
  regular_ = S_ISREG(info.st_mode);
  named_ = regular_ && !standard;
  device_ = info.st_dev;
  inode_ = info.st_ino;
  size_ = static_cast<std::uint64_t>(info.st_size);
  changed_ = nanoseconds(info);
  if (!regular_) spool();
}

void InputFile::spool() {
  const Descriptor from = std::exchange(fd_, Descriptor(unnamed_file()));
  size_ = 0;
  std::vector<char> block(kBlockBytes);
  for (;;) {
    const ssize_t n = ::read(from, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) base::environment_error(name_, "cannot read", errno);
    if (n == 0) break;
    for (ssize_t done = 0; done < n;) {
      const ssize_t written = ::write(fd_, block.data() + done, static_cast<std::size_t>(n - done));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) base::environment_error(name_, "cannot copy to a temporary file (TMPDIR)", errno);
      done += written;
    }
    size_ += static_cast<std::uint64_t>(n);
  }
}

void InputFile::check_unchanged() const {
  if (!regular_) return;
  struct stat info{};
  const bool same_file = ::fstat(fd_, &info) == 0 && static_cast<std::uint64_t>(info.st_size) == size_ &&
                         nanoseconds(info) == changed_;
  if (!same_file)
    base::reject(name_, "the input changed while it was read", base::cat(info.st_size, " bytes"),
                 base::cat(size_, " bytes, not written to since the start"));
  if (!named_) return;
  struct stat named{};
  if (::stat(path_.c_str(), &named) != 0 || named.st_dev != device_ || named.st_ino != inode_)
    base::reject(name_, "the input was replaced or removed while it was read");
}

LineReader::LineReader(const InputFile& file) : file_(file), block_(kBlockBytes) {}

bool LineReader::fill() {
  const std::uint64_t left = file_.size() - offset_;
  if (left == 0) return false;
  file_.check_unchanged();
  for (;;) {
    const ssize_t n = ::pread(file_.descriptor(), block_.data(), std::min<std::uint64_t>(left, block_.size()),
                              static_cast<off_t>(offset_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) base::environment_error(file_.name(), "cannot read", errno);
    if (n == 0) base::reject(file_.name(), "the input changed while it was read: it became shorter");
    at_ = 0;
    end_ = static_cast<std::size_t>(n);
    if (offset_ == 0 && std::string_view(block_.data(), end_).starts_with(kMark)) at_ = kMark.size();
    offset_ += static_cast<std::uint64_t>(n);
    return true;
  }
}

// The line may lie in many blocks. What is beyond the limit is hashed and dropped.
bool LineReader::raw_next(Line& line) {
  if (at_ == end_ && !fill()) return false;
  text_.clear();
  line = Line{};
  line.number = ++number_;
  base::Hasher hasher;
  bool held_return = false;  // a \r whose successor is not known yet
  for (bool ended = false; !ended;) {
    if (at_ == end_ && !fill()) break;
    const std::string_view rest(block_.data() + at_, end_ - at_);
    const std::size_t end = rest.find('\n');
    ended = end != std::string_view::npos;
    std::string_view piece = rest.substr(0, ended ? end : rest.size());
    at_ += piece.size() + (ended ? 1 : 0);
    const auto add = [&](std::string_view bytes) {
      hasher.update(base::as_bytes(bytes));
      line.n_bytes += bytes.size();
      if (text_.size() <= kMaxLineBytes) text_.append(bytes.substr(0, kMaxLineBytes + 1 - text_.size()));
    };
    if (held_return && !piece.empty()) {
      add("\r");
      held_return = false;
    }
    if (piece.ends_with('\r')) {
      piece.remove_suffix(1);
      held_return = true;
    }
    add(piece);
  }
  line.hash = hasher.digest();
  if (line.too_long()) text_ = std::string();
  line.text = text_;
  return true;
}

bool LineReader::next(Line& line) {
  while (raw_next(line))
    if (line.too_long() || line.text.find_first_not_of(" \t\r") != std::string_view::npos) return true;
  return false;
}

}  // namespace quern::batch
