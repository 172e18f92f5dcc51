// One process at a time for a file that is replaced again and again: a lock beside it, ".NAME.lock", held with flock,
// which the kernel drops at any death. Not here: temporaries (temporary.hpp), which are locked themselves.
#pragma once

#include <filesystem>

namespace quern::base {

class FileLock {
 public:
  // Of what `path` means, links followed; the file itself need not exist. An environment error that names the holder
  // when another process (or another lock of this one) has it. Where locks are refused, some network file systems,
  // nothing is locked.
  explicit FileLock(const std::filesystem::path& path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();  // and removes the lock's file

 private:
  bool take(const std::filesystem::path& target);  // false: it was removed meanwhile

  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace quern::base
