// Files that appear whole or not at all: written under a temporary name beside the target, synced, then renamed.
// Not here: directories (output_directory.hpp), whose names and locks both share (temporary.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/bytes.hpp"
#include "base/temporary.hpp"

namespace quern::base {

// A new file inside an OutputDirectory (or anywhere): O_EXCL, short writes and EINTR retried; errors are
// ExitCode::environment and name the path. Not closed before sync(): the destructor only closes.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path, unsigned mode = 0666);  // mode: before the umask
  // An open descriptor, closed at the end. appends: a stream, which has no way back to what was written.
  enum class Order { any, appends };
  OutputFile(int fd, const std::filesystem::path& path, Order order);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(Bytes bytes);                             // at the end
  void write_at(std::uint64_t offset, Bytes bytes);    // inside what was written
  void pad_to(std::uint64_t alignment);                // zero bytes
  std::uint64_t size() const { return size_; }
  void sync();

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  Order order_ = Order::any;
  std::uint64_t size_ = 0;
};

// A file written beside `target` and put in its place by publish(), replacing what is there. Without publish()
// nothing is left, and what was there stays as it was.
//  A symbolic link is followed: what it points to is replaced, the link stays.
//  What is no regular file (a pipe, a terminal, /dev/null, /dev/stdout whatever it is) is written into as it comes.
class AtomicFile {
 public:
  // shared: the mode of what was there, or by the umask. owner_only: 0600, and regular files only.
  enum class Access { shared, owner_only };
  explicit AtomicFile(const std::filesystem::path& target, Access access = Access::owner_only);

  OutputFile& file() { return *file_; }
  void publish();  // fsync of the file, rename, fsync of the directory

 private:
  std::optional<Temporary> temporary_;
  std::optional<OutputFile> file_;
};

// Atomically writes one small file (temporary, sync, rename).
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

// Bytes free for this user on the file system of `path`.
std::uint64_t free_bytes(const std::filesystem::path& path);

}  // namespace quern::base
