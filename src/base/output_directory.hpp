// A directory that appears whole or not at all: written under a temporary name beside the target, then renamed.
#pragma once

#include <filesystem>

#include "base/temporary.hpp"

namespace quern::base {

// exists_ok = false: an existing target is a usage error, and the final rename refuses to replace.
// exists_ok = true (--force): the two directories are exchanged atomically, the old one then removed.
// Without publish() nothing is left.
class OutputDirectory {
 public:
  OutputDirectory(const std::filesystem::path& target, bool exists_ok);

  const std::filesystem::path& path() const { return temporary_.path(); }
  void publish();  // fsync of the directory, rename, fsync of the parent, then the old one goes

 private:
  bool exists_ok_;
  Temporary temporary_;
};

}  // namespace quern::base
