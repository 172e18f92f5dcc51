#include "plan/machine.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

namespace quern::plan {

namespace {

namespace fs = std::filesystem;

// Limits from here on mean "none" (v1 writes 2^63 rounded down to a page).
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

std::optional<std::uint64_t> number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> read_number(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  return file >> word ? number(word) : std::nullopt;
}

// The number behind `key` in a file of lines "key number [unit]".
std::uint64_t read_field(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind(key, 0) != 0) continue;
    const std::size_t at = line.find_first_of("0123456789", key.size());
    if (at != std::string::npos) return number(line.substr(at)).value_or(0);
  }
  return 0;
}

// Files of one version of control groups.
struct Version {
  const char *limit, *used, *inactive;
};
constexpr Version kV1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Version kV2 = {"memory.max", "memory.current", "inactive_file"};

// From the group up to the mount: containers see their own group at the mount itself.
void add_limits(const fs::path& mount, std::string group, const Version& version, MachineMemory& memory) {
  while (true) {
    const fs::path folder = group.empty() ? mount : mount / group.substr(1);
    const std::optional<std::uint64_t> limit = read_number(folder / version.limit);
    if (limit && *limit < kNoLimit && (!memory.cgroup_limit || *limit < *memory.cgroup_limit)) {
      const std::uint64_t used = read_number(folder / version.used).value_or(0);
      const std::uint64_t droppable = read_field(folder / "memory.stat", version.inactive);
      memory.cgroup_limit = limit;
      memory.cgroup_used = used - std::min(used, droppable);
    }
    if (group.empty()) return;
    group.erase(group.rfind('/'));
  }
}

}  // namespace

std::uint64_t MachineMemory::usable() const {
  if (!cgroup_limit) return available;
  const std::uint64_t left = *cgroup_limit - std::min(*cgroup_limit, cgroup_used);
  return available == 0 ? left : std::min(available, left);
}

MachineMemory machine_memory(const fs::path& root) {
  MachineMemory memory;
  memory.available = read_field(root / "proc/meminfo", "MemAvailable:") * 1024;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string group = line.substr(second + 1);
    if (group.empty() || group[0] != '/' || group.find("..") != std::string::npos) group = "";
    while (!group.empty() && group.back() == '/') group.pop_back();
    if (controllers == ",,")
      add_limits(root / "sys/fs/cgroup", group, kV2, memory);
    else if (controllers.find(",memory,") != std::string::npos)
      add_limits(root / "sys/fs/cgroup/memory", group, kV1, memory);
  }
  return memory;
}

}  // namespace quern::plan
