// Files and directories under a temporary name beside their target: who owns one, when it is stale, how it takes
// the target's place. Not here: writing them (output_file.hpp, output_directory.hpp).
//
// Names are ".TARGET.quern-XXXXXX". The owner holds an flock on it as long as it lives, which the kernel drops even
// after SIGKILL: a name of this form that can be locked belongs to a dead process and is removed by the next one
// with the same target. Where locks are refused (some network file systems) nothing counts as stale.
#pragma once

#include <filesystem>

#include "base/error.hpp"

namespace quern::base {

class Temporary {
 public:
  enum class Kind { file, directory };
  // Removes stale ones of the same target first. mode: before the umask.
  Temporary(const std::filesystem::path& target, Kind kind, unsigned mode);
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary();  // with everything in it, unless it was published

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return fd_; }  // file: for reading and writing

  // Renames it to the target and syncs the directory that holds both; what was there (a link itself, not what it
  // points to) is removed only then. When the sync fails the two names are changed back before the error leaves,
  // or the error says what lies where. replace = false: an existing target is an error and stays.
  void publish(bool replace);

 private:
  bool create(unsigned mode);  // false: the name is taken, or was taken away
  void move(bool replace, bool& exchanged);
  [[noreturn]] void undo(bool exchanged, const Error& cause);

  std::filesystem::path target_, path_;
  Kind kind_;
  int fd_ = -1;
  int slot_ = -1;
  bool owned_ = false;
};

// fsync of a directory; EINVAL (no such notion there) is no error.
void sync_directory(const std::filesystem::path& path);

// "." for a bare name.
std::filesystem::path parent_of(const std::filesystem::path& path);

// "dir/name/" and "dir/name" are the same target.
std::filesystem::path without_trailing_slash(const std::filesystem::path& path);

// For signal handlers that end the process: removes all temporaries of this process; whether there were any.
// Async-signal-safe. Only threads that do not publish() at the time may run it: base::ThreadPool's workers take no
// signals.
bool remove_temporaries_in_handler();

}  // namespace quern::base
