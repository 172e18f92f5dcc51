#include "base/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/strings.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quern::base {

namespace {

// Waits spin this many pauses (150 us on a Zen 3, 300 us on Intel cores) before they sleep: longer than the piece that
// another thread has still to end, since to wake up costs 50 us in a virtual machine; shorter than a
// time slice, so that a busy neighbour on the core costs its share and not more.
constexpr int kSpins = 6000;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// Returns once ready(value), for a value that others store and then notify.
template <class Ready>
std::uint32_t wait_until(const std::atomic<std::uint32_t>& value, Ready ready) {
  for (int spins = 0;; ++spins) {
    const std::uint32_t now = value.load(std::memory_order_acquire);
    if (ready(now)) return now;
    if (spins < kSpins)
      pause();
    else
      value.wait(now, std::memory_order_acquire);  // asleep: its core may go to the thread that is waited for
  }
}

// A worker's part in a job: the job's number and what became of the part.
enum Part : std::uint32_t { open, taken, done };
constexpr std::uint32_t kPartBits = 2;
constexpr std::uint32_t part_of(std::uint32_t job, Part part) { return job << kPartBits | part; }

std::uint64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

constexpr std::size_t kMostChunks = std::size_t{1} << 24;  // of a job: far more than balance needs, numbered in 32 bits

}  // namespace

// The chunks of a job that one thread begins with, from the first on; a thread that has ended its own takes the last of
// another's. So a thread goes through memory in order, and what it asked for beyond the end of a chunk is its own.
class alignas(64) Share {
 public:
  void set(std::uint32_t first, std::uint32_t end) { range_.store(pack(first, end), std::memory_order_relaxed); }
  bool take_first(std::uint32_t& chunk) {
    return take([&](std::uint32_t& first, std::uint32_t&) { chunk = first++; });
  }
  bool take_last(std::uint32_t& chunk) {
    return take([&](std::uint32_t&, std::uint32_t& end) { chunk = --end; });
  }

 private:
  static constexpr std::uint64_t pack(std::uint32_t first, std::uint32_t end) { return std::uint64_t{first} << 32 | end; }
  template <class Change>
  bool take(Change change) {
    std::uint64_t range = range_.load(std::memory_order_relaxed);
    for (;;) {
      auto first = static_cast<std::uint32_t>(range >> 32), end = static_cast<std::uint32_t>(range);
      if (first >= end) return false;
      change(first, end);
      if (range_.compare_exchange_weak(range, pack(first, end), std::memory_order_relaxed)) return true;
    }
  }
  std::atomic<std::uint64_t> range_{0};
};

// One job at a time. A worker that takes its part before the caller has run out of items joins in; one that is
// late, since its core serves another process, finds its part taken and is not waited for.
struct ThreadPool::State {
  struct alignas(64) Seat {
    std::atomic<std::uint32_t> part{part_of(0, done)};
    bool take(std::uint32_t job) {
      std::uint32_t expected = part_of(job, open);
      return part.compare_exchange_strong(expected, part_of(job, taken), std::memory_order_acq_rel);
    }
  };

  RangeFunction* function = nullptr;
  std::size_t n_items = 0, grain = 1, n_threads = 1;
  alignas(64) std::atomic<std::uint32_t> job{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  std::vector<Seat> seats;    // of the workers, the caller has none
  std::vector<Share> shares;  // of the caller and the workers
  std::function<void(const LoopTimes&)> watch;
  LoopTimes times;  // of the loop at hand, where it is watched

  // Chunks to all, in order. `grain` grows where there would be more than kMostChunks.
  void deal() {
    grain = std::max(grain, n_items / kMostChunks + 1);
    const std::size_t n_chunks = (n_items + grain - 1) / grain, n_shares = shares.size();
    for (std::size_t i = 0; i < n_shares; ++i)
      shares[i].set(static_cast<std::uint32_t>(i * n_chunks / n_shares),
                    static_cast<std::uint32_t>((i + 1) * n_chunks / n_shares));
  }

  // A thread's own share, then what is left of the others', nearest first.
  void work(std::size_t thread) {
    if (watch) times.threads[thread].begin = now_ns();
    std::uint32_t chunk = 0;
    while (shares[thread].take_first(chunk)) run_chunk(chunk, thread);
    for (std::size_t i = 1; i < shares.size(); ++i)
      while (shares[(thread + i) % shares.size()].take_last(chunk)) run_chunk(chunk, thread);
    if (watch) times.threads[thread].end = now_ns();
  }
  void run_chunk(std::size_t chunk, std::size_t thread) {
    const std::size_t begin = chunk * grain;
    (*function)(begin, std::min(begin + grain, n_items), thread);
  }

  void worker(std::size_t thread) {
    Seat& seat = seats[thread - 1];
    for (std::uint32_t seen = 0;;) {
      seen = wait_until(job, [&](std::uint32_t now) { return now != seen; });
      if (stop) return;
      if (!seat.take(seen)) continue;
      work(thread);
      seat.part.store(part_of(seen, done));  // in one order with the sleeper's count that notify reads: no lost wake-up
      seat.part.notify_one();
    }
  }

  void begin_watch() {
    times.threads.assign(shares.size(), {});
    times.loop.begin = now_ns();
  }
  void end_watch() {
    times.loop.end = now_ns();
    watch(times);
  }

  void announce() {
    job.fetch_add(1);
    job.notify_all();
  }

  // Workers that did not come are no longer wanted, their share is done; the others are waited for.
  void finish(std::uint32_t number) {
    for (Seat& seat : seats)
      if (seat.take(number)) seat.part.store(part_of(number, done), std::memory_order_relaxed);
    for (const Seat& seat : seats)
      wait_until(seat.part, [&](std::uint32_t part) { return part == part_of(number, done); });
  }

  void work_together() {
    deal();
    const std::uint32_t number = job.load(std::memory_order_relaxed) + 1;
    for (Seat& seat : seats) seat.part.store(part_of(number, open), std::memory_order_relaxed);
    announce();
    work(0);
    finish(number);
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

ThreadPool::ThreadPool(std::size_t n_threads, std::size_t n_running) : state_(std::make_unique<State>()) {
  QUERN_ASSERT(n_threads >= 1 && n_running >= 1);
  state_->n_threads = n_threads;
  const std::size_t n_workers = std::min(n_threads, n_running) - 1;
  state_->seats = std::vector<State::Seat>(n_workers);
  state_->shares = std::vector<Share>(n_workers + 1);
  try {
    const SignalsBlocked blocked;
    for (std::size_t i = 1; i <= n_workers; ++i)
      state_->workers.emplace_back([state = state_.get(), i] { state->worker(i); });
  } catch (const std::system_error&) {
    const std::size_t failed = state_->workers.size() + 1;
    end_workers();
    environment_error("--threads", cat("cannot start thread ", failed, " of ", n_threads));
  }
}

ThreadPool::~ThreadPool() { end_workers(); }

void ThreadPool::end_workers() {
  state_->stop = true;
  state_->announce();
  for (std::thread& worker : state_->workers) worker.join();
  state_->workers.clear();
}

std::size_t ThreadPool::n_threads() const { return state_->n_threads; }

void ThreadPool::parallel_for(std::size_t n_items, std::size_t grain, RangeFunction function) {
  if (n_items == 0) return;
  State& state = *state_;
  if (state.seats.empty() || n_items <= grain) {
    for (std::size_t begin = 0; begin < n_items; begin += grain)
      function(begin, std::min(begin + grain, n_items), 0);
    return;
  }
  state.function = &function;
  state.n_items = n_items;
  state.grain = grain;
  if (state.watch) state.begin_watch();
  state.work_together();
  if (state.watch) state.end_watch();
}

void ThreadPool::set_watch(std::function<void(const LoopTimes&)> watch) { state_->watch = std::move(watch); }

}  // namespace quern::base
