#include "base/cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/strings.hpp"

namespace quern::base {

namespace {

// The CPUs that this thread may run on, and the distinct physical cores among them.
struct Allowed {
  std::size_t cpus, cores;
};

Allowed allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) {
    const std::size_t all = std::max(1u, std::thread::hardware_concurrency());
    return {all, all};
  }
  std::set<std::string> cores;
  std::size_t cpus = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    ++cpus;
    std::ifstream file(cat("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
    std::string siblings;
    if (file >> siblings) cores.insert(siblings); else cores.insert(cat("cpu", cpu));
  }
  return {std::max<std::size_t>(1, cpus), std::max<std::size_t>(1, std::min(cpus, cores.size()))};
}

// Whole CPUs of the cgroup quota (v2 cpu.max along the path, v1 cfs quota), rounded up.
std::optional<std::size_t> cgroup_quota() {
  std::optional<std::size_t> least;
  const auto consider = [&](double quota, double period) {
    if (quota <= 0 || period <= 0) return;
    const auto cpus = static_cast<std::size_t>((quota + period - 1) / period);
    least = std::min(least.value_or(SIZE_MAX), std::max<std::size_t>(1, cpus));
  };
  std::ifstream self("/proc/self/cgroup");
  for (std::string line; std::getline(self, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    for (std::string path = line.substr(3); !path.empty();) {
      std::ifstream file(cat("/sys/fs/cgroup", path == "/" ? "" : path, "/cpu.max"));
      std::string quota;
      double period = 0;
      if (file >> quota >> period && quota != "max") consider(std::strtod(quota.c_str(), nullptr), period);
      if (path == "/") break;
      path = path.substr(0, path.rfind('/'));
      if (path.empty()) path = "/";
    }
  }
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (quota_file >> quota && period_file >> period) consider(quota, period);
  return least;
}

}  // namespace

std::size_t usable_cpus() {
  return std::min(allowed().cpus, cgroup_quota().value_or(SIZE_MAX));
}

std::size_t default_thread_count() {
  return std::min(allowed().cores, cgroup_quota().value_or(SIZE_MAX));
}

}  // namespace quern::base
