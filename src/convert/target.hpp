// Where a conversion may write: rules that hold before any work is done.
#pragma once

#include <cstdint>
#include <filesystem>

namespace quern::convert {

// Usage errors: the target exists (without force), is the source, lies in it or holds it; with
// force, a directory that is not a quern model is not replaced.
void check_target(const std::filesystem::path& source, const std::filesystem::path& target,
                  bool force);

// An environment error "needs X, has Y" when the target's file system cannot take `bytes`.
void check_space(const std::filesystem::path& target, std::uint64_t bytes);

}  // namespace quern::convert
