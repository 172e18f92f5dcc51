#include "batch/output_scan.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "batch/json_scan.hpp"

namespace quern::batch {

namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

// Which item of the index an answer belongs to.
class Places {
 public:
  Places(LineIndex& index, bool ordered) : index_(index), ordered_(ordered) {
    if (ordered) return;
    sorted_.reserve(index.size());
    for (std::size_t i = 0; i < index.size(); ++i) sorted_.push_back(static_cast<std::uint32_t>(i));
    std::sort(sorted_.begin(), sorted_.end(), [&](auto a, auto b) { return index_.key(a) < index_.key(b); });
  }

  // Takes the place; false: no such line, there already, or not its turn.
  bool take(std::uint64_t key) {
    if (ordered_) {
      if (next_ >= index_.size() || index_.key(next_) != key) return false;
      index_.set_done(next_++);
      return true;
    }
    auto found = std::lower_bound(sorted_.begin(), sorted_.end(), key,
                                  [&](auto item, std::uint64_t k) { return index_.key(item) < k; });
    if (found == sorted_.end() || index_.key(*found) != key || index_.done(*found)) return false;
    index_.set_done(*found);
    return true;
  }

 private:
  LineIndex& index_;
  bool ordered_;
  std::size_t next_ = 0;
  std::vector<std::uint32_t> sorted_;
};

// Reads whole lines, however long, through one buffer.
class OutputLines {
 public:
  explicit OutputLines(int descriptor, const std::string& name) : fd_(descriptor), name_(name) {}

  bool next(std::string_view& line) {
    for (;;) {
      const std::size_t end = buffer_.find('\n', searched_);
      if (end != std::string::npos) {
        line = std::string_view(buffer_).substr(at_, end - at_);
        at_ = searched_ = end + 1;
        return true;
      }
      buffer_.erase(0, at_);
      at_ = 0;
      searched_ = buffer_.size();
      if (!read_more()) return false;
    }
  }

 private:
  bool read_more() {
    const std::size_t held = buffer_.size();
    buffer_.resize(held + kBlockBytes);
    ssize_t n = 0;
    do n = ::pread(fd_, buffer_.data() + held, kBlockBytes, static_cast<off_t>(offset_));
    while (n < 0 && errno == EINTR);
    if (n < 0) base::environment_error(name_, "cannot read", errno);
    buffer_.resize(held + static_cast<std::size_t>(n));
    offset_ += static_cast<std::uint64_t>(n);
    return n > 0;
  }

  int fd_;
  std::string name_, buffer_;
  std::size_t at_ = 0, searched_ = 0;
  std::uint64_t offset_ = 0;
};

}  // namespace

OutputScan scan_output(int descriptor, const std::string& name, const SyncState& sync, bool ordered, LineIndex& index) {
  struct stat info{};
  if (::fstat(descriptor, &info) != 0) base::environment_error(name, "cannot look at", errno);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  OutputScan scan;
  Places places(index, ordered);
  OutputLines lines(descriptor, name);
  std::vector<JsonMember> members;
  std::string_view line;
  for (std::size_t number = 1; lines.next(line); ++number) {
    const bool synced = scan.good_bytes < sync.synced_bytes;
    if (!synced && (sync.unsure || line.find('\0') != std::string_view::npos)) {
      scan.unsure = sync.unsure;
      break;
    }
    const auto fault = scan_json(line, members);
    const std::string where = base::cat(name, ":", number);
    if (fault)
      base::reject(where, base::cat("line ", number, " is not valid JSON: ", fault->what, " at byte ", fault->offset));
    const JsonMember* const id = find_member(members, "id");
    const auto text = id == nullptr ? std::nullopt : json_string(id->value);
    const auto key = text ? key_of_request_id(*text) : std::nullopt;
    if (!key) base::reject(where, base::cat("line ", number, " is no answer of quern batch: no \"id\" of one"));
    if (!places.take(*key))
      base::reject(where, base::cat("line ", number, " (", *text, ") answers no line of the input",
                                    ordered ? " in its place" : " or one a second time"));
    const JsonMember* const error = find_member(members, "error");
    ++(error != nullptr && error->value != "null" ? scan.n_failed : scan.n_done);
    scan.good_bytes += line.size() + 1;
  }
  scan.torn_bytes = size - scan.good_bytes;
  return scan;
}

}  // namespace quern::batch
