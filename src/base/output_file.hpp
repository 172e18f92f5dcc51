// Files and directories that appear whole or not at all: written under a temporary name beside the
// target, synced, then renamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/bytes.hpp"

namespace quern::base {

// A new file inside an OutputDirectory (or anywhere): O_EXCL, short writes and EINTR retried; errors are
// ExitCode::environment and name the path. Not closed before sync(): the destructor only closes.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path, unsigned mode = 0666);  // mode: before the umask
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
  std::uint64_t size_ = 0;
};

// A directory written beside `target` and put in its place by publish().
//  exists_ok = false: an existing target is a usage error, and the final rename refuses to replace.
//  exists_ok = true (--force): the two directories are exchanged atomically, the old one then removed.
// Without publish() the temporary directory is removed by the destructor.
class OutputDirectory {
 public:
  OutputDirectory(const std::filesystem::path& target, bool exists_ok);
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;
  ~OutputDirectory();

  const std::filesystem::path& path() const { return temporary_; }
  void publish();  // fsync of the directory, rename, fsync of the parent

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  bool exists_ok_ = false;
  bool published_ = false;
};

// A file written beside `target` and put in its place by publish(), replacing what is there (of a symbolic
// link: what it points to). Private ones have mode 0600 whatever the umask. Without publish() nothing is left.
class AtomicFile {
 public:
  enum class Access { shared, owner_only };
  explicit AtomicFile(const std::filesystem::path& target, Access access = Access::owner_only);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  OutputFile& file() { return *file_; }
  void publish();  // fsync of the file, rename, fsync of the directory

 private:
  std::filesystem::path target_, temporary_;
  std::optional<OutputFile> file_;
};

// Atomically writes one small file (temporary, sync, rename).
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

// Bytes free for this user on the file system of `path`.
std::uint64_t free_bytes(const std::filesystem::path& path);

}  // namespace quern::base
