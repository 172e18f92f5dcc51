// How many CPUs this process may use: its affinity mask and the CPU quota of its cgroups.
#pragma once

#include <cstddef>

namespace quern::base {

// Logical CPUs, at least 1: more running threads only wait for each other.
std::size_t usable_cpus();

// Threads to use by default: the physical cores among them.
std::size_t default_thread_count();

}  // namespace quern::base
