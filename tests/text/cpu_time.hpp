// CPU seconds of the calling thread, best of three: other processes on the machine do not count.
#pragma once

#include <ctime>

template <class F>
double best_cpu_seconds(F&& work) {
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    const auto now = [] {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
    const double start = now();
    work();
    const double spent = now() - start;
    if (spent < best) best = spent;
  }
  return best;
}

// Four times the work may take 2.5 x 2.5 times as long (n log n and caches), where a square would
// take 16.
inline constexpr double kFourfold = 6.25;
