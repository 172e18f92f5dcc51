#include "base/output_directory.hpp"

#include <sys/stat.h>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::base {

namespace fs = std::filesystem;

namespace {

std::string shown(const fs::path& path) { return printable(path.string()); }

fs::path checked_target(const fs::path& path, bool exists_ok) {
  const fs::path target = without_trailing_slash(path);
  struct stat status{};
  const bool exists = ::lstat(target.c_str(), &status) == 0;
  if (exists && !exists_ok) usage_error(shown(target), "already exists (use --force to replace it)");
  if (exists && !S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode))
    usage_error(shown(target), "exists and is not a directory");
  return target;
}

}  // namespace

OutputDirectory::OutputDirectory(const fs::path& target, bool exists_ok)
    : exists_ok_(exists_ok),
      temporary_(checked_target(target, exists_ok), Temporary::Kind::directory, 0777) {}

void OutputDirectory::publish() {
  sync_directory(temporary_.path());
  temporary_.publish(exists_ok_);
}

}  // namespace quern::base
