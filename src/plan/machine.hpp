// Memory that this process may use: MemAvailable, and the limits of its control groups (v1 and v2).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace quern::plan {

struct MachineMemory {
  std::uint64_t available = 0;                // MemAvailable
  std::optional<std::uint64_t> cgroup_limit;  // the tightest on the way to the root
  std::uint64_t cgroup_used = 0;              // of that group, without what can be dropped (inactive file pages)

  // The smaller of what is available and what the group has left.
  std::uint64_t usable() const;
};

// root: "/" but for tests; reads proc/meminfo, proc/self/cgroup and sys/fs/cgroup under it. What cannot be read
// counts as no limit.
MachineMemory machine_memory(const std::filesystem::path& root = "/");

}  // namespace quern::plan
