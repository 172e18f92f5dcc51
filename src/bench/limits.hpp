// What this machine can do at best with some number of threads, measured: the bounds that speeds are shares of, and
// by which runs of different machines are made comparable. The file that keeps them is limits_file.hpp's.
#pragma once

#include <string>

#include "base/thread_pool.hpp"
#include "kernels/kernels.hpp"

namespace quern::bench {

struct Limits {
  std::string cpu, isa;
  std::size_t n_threads = 0;
  double read_bytes_per_s = 0;                               // from memory, all threads together
  double int8_ops_per_s = 0, bf16_ops_per_s = 0, f32_ops_per_s = 0;  // of registers and first cache level
};

// Takes about `seconds`, and 256 MiB of memory while it runs. Each figure is the best of several passes.
Limits measure_limits(const kernels::Kernels& kernels, base::ThreadPool& pool, double seconds);

}  // namespace quern::bench
