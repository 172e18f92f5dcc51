// Barriers of the thread pool: the time of a parallel loop that has nothing to do, alone and beside a process that
// computes; and how near a loop of equal items comes to its share of the CPUs in both cases (100 %: no time is lost to
// waiting). Not run by ctest.
//   pool_bench [THREADS ...] [--seconds 1]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/cpus.hpp"
#include "base/thread_pool.hpp"

namespace {

using namespace quern;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A process that takes one CPU for as long as it lives.
class Neighbour {
 public:
  Neighbour() : pid_(fork()) {
    if (pid_ != 0) return;
    for (unsigned x = 0;; ++x) __asm__ volatile("" : "+r"(x));
  }
  ~Neighbour() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  pid_t pid_;
};

// About 10 us of arithmetic.
void work_a_little(unsigned& out) {
  unsigned x = out + 1;
  for (int i = 0; i < 10000; ++i) x = x * 1664525u + 1013904223u;
  out = x;
}

// Median time of a loop of one empty item per thread, in ns.
double barrier_ns(base::ThreadPool& pool, double budget) {
  std::vector<double> times;
  auto nothing = [](std::size_t, std::size_t, std::size_t) {};
  for (const auto start = Clock::now(); seconds_since(start) < budget;) {
    const auto begin = Clock::now();
    for (int i = 0; i < 100; ++i) pool.parallel_for(pool.n_threads(), 1, nothing);
    times.push_back(seconds_since(begin) * 1e9 / 100);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// Items a second in loops of 64 items, as the layers of a model run them.
double items_per_second(base::ThreadPool& pool, double budget) {
  constexpr std::size_t kItems = 64;
  std::vector<unsigned> out(kItems * 16);  // a line each
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) work_a_little(out[16 * i]);
  };
  std::size_t done = 0;
  const auto start = Clock::now();
  while (seconds_since(start) < budget) {
    pool.parallel_for(kItems, 1, work);
    done += kItems;
  }
  return static_cast<double>(done) / seconds_since(start);
}

struct Figures {
  double barrier, items;
};
Figures measure(std::size_t threads, double budget) {
  base::ThreadPool pool(threads);
  return {barrier_ns(pool, budget), items_per_second(pool, budget)};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::size_t> counts;
  double budget = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--seconds" && i + 1 < argc)
      budget = std::strtod(argv[++i], nullptr);
    else
      counts.push_back(std::max<std::size_t>(1, std::strtoull(argv[i], nullptr, 10)));
  }
  const std::size_t cpus = base::usable_cpus();
  if (counts.empty()) counts = {1, cpus, 4 * cpus};
  const double one = measure(1, budget).items;
  std::printf("%zu CPUs; a loop of 64 items of %.1f us\n", cpus, 1e6 / one);
  std::printf("%7s %22s %30s\n", "threads", "barrier, ns", "of the share of the CPUs");
  std::printf("%7s %11s %10s %19s %10s\n", "", "alone", "beside one", "alone", "beside one");
  for (const std::size_t threads : counts) {
    const Figures alone = measure(threads, budget);
    Figures beside;
    {
      const Neighbour neighbour;
      beside = measure(threads, budget);
    }
    // Beside one process that computes, n threads on as many CPUs have n / (n + 1) of them.
    const double running = static_cast<double>(std::min(threads, cpus)), all = static_cast<double>(cpus);
    const double share = std::min(running, all * running / (running + 1));
    std::printf("%7zu %11.0f %10.0f %17.0f %% %8.0f %%\n", threads, alone.barrier, beside.barrier,
                100 * alone.items / (one * running), 100 * beside.items / (one * share));
  }
  return 0;
}
