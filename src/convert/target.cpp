#include "convert/target.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "base/strings.hpp"

namespace quern::convert {

namespace {

namespace fs = std::filesystem;
using base::cat;

std::string shown(const fs::path& path) {
  return base::printable(path.string());
}

// Without links and "..", also for what does not exist yet; "" when even that fails.
fs::path real(const fs::path& path) {
  std::error_code error;
  fs::path result = fs::weakly_canonical(fs::absolute(path, error), error);
  if (!result.has_filename()) result = result.parent_path();
  return error ? fs::path() : result;
}

bool inside(const fs::path& inner, const fs::path& outer) {
  const auto [at, unused] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  return at == outer.end();
}

// Empty, or holding nothing but a model of ours.
bool replaceable(const fs::path& directory) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    const bool file = fs::is_regular_file(entry.symlink_status(error));  // not a directory or link of that name
    if (error || !file || (name != "model.quern" && name != "model.json")) return false;
  }
  return !error;
}

}  // namespace

void check_target(const fs::path& source, const fs::path& target, bool force) {
  if (target.empty()) base::usage_error("", "no output directory given");
  std::error_code error;
  const fs::path from = real(source), to = real(target);
  const bool from_directory = fs::is_directory(source, error);
  if (!from.empty() && !to.empty()) {
    if (from == to) base::usage_error(shown(target), "is the source");
    if (from_directory && inside(to, from))
      base::usage_error(shown(target), "lies inside the source");
    if (inside(from, to) && fs::exists(target, error))
      base::usage_error(shown(target), "holds the source");
  }
  const fs::path parent = to.parent_path();
  if (!to.empty() && !fs::exists(parent, error)) base::environment_error(shown(parent), "no such directory to write into");
  const fs::file_status status = fs::symlink_status(target, error);
  if (!fs::exists(status)) return;
  if (!force) base::usage_error(shown(target), "already exists (use --force to replace it)");
  if (fs::is_directory(target, error) && !fs::is_symlink(status) && !replaceable(target))
    base::usage_error(shown(target),
                      "holds files that are not a quern model; --force does not replace it");
}

void check_space(const fs::path& target, std::uint64_t bytes) {
  const std::uint64_t free = base::free_bytes(target);
  if (free >= bytes) return;
  base::environment_error(shown(target),
                          cat("not enough free space: needs ", base::human_bytes(bytes), ", has ",
                              base::human_bytes(free)));
}

}  // namespace quern::convert
