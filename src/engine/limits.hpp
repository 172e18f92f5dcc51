// What this machine can do, measured: the read bandwidth that bounds decode. Only run when asked
// for.
#pragma once

#include "base/thread_pool.hpp"

namespace quern::engine {

// Bytes per second that all threads of the pool read together from memory, the best of several
// passes over a buffer larger than the caches, within about `seconds`. Takes 256 MiB of memory
// while it runs.
double measure_read_bandwidth(base::ThreadPool& pool, double seconds = 0.2);

}  // namespace quern::engine
