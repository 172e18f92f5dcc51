#include "base/thread_pool.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <csignal>
#include <condition_variable>
#include <cstdio>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/strings.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quern::base {

namespace {

// Spins this many pauses (about 20-50 us) before sleeping: longer than a barrier inside a layer, shorter
// than a time slice, so that a busy neighbour on the core costs its share and not more.
constexpr int kSpins = 1000;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

struct ThreadPool::State {
  struct alignas(64) Counter {
    std::atomic<std::size_t> value{0};
  };

  // One job at a time: its generation wakes the workers, its counters hand out items and count the finished.
  RangeFunction* function = nullptr;
  std::size_t n_items = 0, grain = 1, n_threads = 1;
  Counter next, running;
  alignas(64) std::atomic<std::uint64_t> generation{0};
  std::atomic<int> sleeping{0};
  std::mutex mutex;
  std::condition_variable wake;
  bool stop = false;
  std::vector<std::thread> workers;

  void work(std::size_t thread) {
    // A static first chunk keeps a thread on the same rows from token to token; the rest is dynamic.
    std::size_t begin = thread * grain;
    while (begin < n_items) {
      (*function)(begin, std::min(begin + grain, n_items), thread);
      begin = next.value.fetch_add(grain, std::memory_order_relaxed);
    }
  }

  void worker(std::size_t thread) {
    std::uint64_t seen = 0;
    while (true) {
      int spins = 0;
      while (generation.load(std::memory_order_acquire) == seen) {
        if (++spins < kSpins) {
          pause();
          continue;
        }
        std::unique_lock lock(mutex);
        sleeping.fetch_add(1);
        wake.wait(lock, [&] { return generation.load() != seen; });
        sleeping.fetch_sub(1);
      }
      seen = generation.load(std::memory_order_acquire);
      if (stop) return;
      work(thread);
      running.value.fetch_sub(1, std::memory_order_release);
    }
  }

  void announce() {
    generation.fetch_add(1);
    if (sleeping.load() == 0) return;
    const std::lock_guard lock(mutex);
    wake.notify_all();
  }
};

namespace {

// While it lives, threads are born without signals of other processes: those go to the thread that made the pool,
// whose handler may then take for granted that it interrupts that one (base/temporary.hpp).
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) ::sigdelset(&all, fault);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

ThreadPool::ThreadPool(std::size_t n_threads) : state_(std::make_unique<State>()) {
  QUERN_ASSERT(n_threads >= 1);
  state_->n_threads = n_threads;
  try {
    const SignalsBlocked blocked;
    for (std::size_t i = 1; i < n_threads; ++i)
      state_->workers.emplace_back([state = state_.get(), i] { state->worker(i); });
  } catch (const std::system_error&) {
    state_->stop = true;
    state_->announce();
    for (std::thread& worker : state_->workers) worker.join();
    const std::size_t failed = state_->workers.size() + 1;
    state_->workers.clear();
    environment_error("--threads", cat("cannot start thread ", failed, " of ", n_threads));
  }
}

ThreadPool::~ThreadPool() {
  if (state_->workers.empty()) return;
  state_->stop = true;
  state_->announce();
  for (std::thread& worker : state_->workers) worker.join();
}

std::size_t ThreadPool::n_threads() const { return state_->n_threads; }

void ThreadPool::parallel_for(std::size_t n_items, std::size_t grain, RangeFunction function) {
  if (n_items == 0) return;
  State& state = *state_;
  if (state.n_threads == 1 || n_items <= grain) {
    for (std::size_t begin = 0; begin < n_items; begin += grain)
      function(begin, std::min(begin + grain, n_items), 0);
    return;
  }
  state.function = &function;
  state.n_items = n_items;
  state.grain = grain;
  state.next.value.store(state.n_threads * grain, std::memory_order_relaxed);
  state.running.value.store(state.n_threads - 1, std::memory_order_relaxed);
  state.announce();
  state.work(0);
  for (int spins = 0; state.running.value.load(std::memory_order_acquire) != 0;) {
    if (++spins < kSpins) pause(); else std::this_thread::yield();
  }
}

namespace {

// Distinct physical cores among the CPUs this thread may run on.
std::size_t allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return std::max(1u, std::thread::hardware_concurrency());
  std::set<std::string> cores;
  std::size_t cpus = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    ++cpus;
    std::ifstream file(cat("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
    std::string siblings;
    if (file >> siblings) cores.insert(siblings); else cores.insert(cat("cpu", cpu));
  }
  return std::max<std::size_t>(1, std::min(cpus, cores.size()));
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

std::size_t default_thread_count() {
  return std::min(allowed_cores(), cgroup_quota().value_or(SIZE_MAX));
}

}  // namespace quern::base
