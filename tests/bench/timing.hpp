// Times of pieces of code on one thread, for the benchmarks run by hand.
#pragma once

#include <ctime>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace quern::bench {

// Time of this thread on a CPU, so that other programs disturb less.
inline double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

inline double seconds_of(const std::function<void()>& f) {
  const double start = thread_seconds();
  f();
  return thread_seconds() - start;
}

// Median of repeated runs within a time budget, after one run to warm up.
inline double median_seconds(double budget, const std::function<void()>& f) {
  f();
  std::vector<double> times;
  double total = 0;
  while (times.size() < 3 || (total < budget && times.size() < 2000)) {
    times.push_back(seconds_of(f));
    total += times.back();
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace quern::bench
