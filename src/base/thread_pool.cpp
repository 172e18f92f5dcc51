#include "base/thread_pool.hpp"

#include <algorithm>
#include <atomic>
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

}  // namespace

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
  alignas(64) std::atomic<std::size_t> next{0};
  alignas(64) std::atomic<std::uint32_t> job{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  std::vector<Seat> seats;  // of the workers, the caller has none

  void run_chunk(std::size_t chunk, std::size_t thread) {
    const std::size_t begin = chunk * grain;
    if (begin < n_items) (*function)(begin, std::min(begin + grain, n_items), thread);
  }

  // A thread's first chunk is its own, so that it meets the same rows from token to token; the rest is dynamic.
  void work(std::size_t thread) {
    run_chunk(thread, thread);
    for (std::size_t begin; (begin = next.fetch_add(grain, std::memory_order_relaxed)) < n_items;)
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

  void announce() {
    job.fetch_add(1);
    job.notify_all();
  }

  // What workers that did not come left behind is done here; the others are waited for.
  void finish(std::uint32_t number) {
    for (std::size_t i = 0; i < seats.size(); ++i) {
      if (!seats[i].take(number)) continue;
      run_chunk(i + 1, 0);
      seats[i].part.store(part_of(number, done), std::memory_order_relaxed);
    }
    for (const Seat& seat : seats)
      wait_until(seat.part, [&](std::uint32_t part) { return part == part_of(number, done); });
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
  state.next.store((state.seats.size() + 1) * grain, std::memory_order_relaxed);
  const std::uint32_t number = state.job.load(std::memory_order_relaxed) + 1;
  for (State::Seat& seat : state.seats) seat.part.store(part_of(number, open), std::memory_order_relaxed);
  state.announce();
  state.work(0);
  state.finish(number);
}

}  // namespace quern::base
