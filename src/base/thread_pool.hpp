// Persistent worker threads and parallel loops over numbered items.
// Results never depend on the number of threads: an item's work depends on its number alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/cpus.hpp"

namespace quern::base {

// A non-owning reference to a callable void(std::size_t begin, std::size_t end, std::size_t thread).
class RangeFunction {
 public:
  template <class F>
  RangeFunction(F& function)  // NOLINT: implicit by design, the callable outlives the call
      : object_(&function), call_([](void* object, std::size_t begin, std::size_t end,
                                     std::size_t thread) {
          (*static_cast<F*>(object))(begin, end, thread);
        }) {}
  void operator()(std::size_t begin, std::size_t end, std::size_t thread) const {
    call_(object_, begin, end, thread);
  }

 private:
  void* object_;
  void (*call_)(void*, std::size_t, std::size_t, std::size_t);
};

// When a loop ran, in nanoseconds of the steady clock.
struct LoopTimes {
  struct Span {
    std::uint64_t begin = 0, end = 0;
  };
  Span loop;
  std::vector<Span> threads;  // from when a thread joined in to the end of its last item; 0, 0: it did not come
};

class ThreadPool {
 public:
  // n_threads >= 1, including the caller, is what loops cut their work for; at most n_running of them exist: threads
  // beyond the CPUs of this process would only wait for each other. Error(environment) when one cannot be started.
  explicit ThreadPool(std::size_t n_threads, std::size_t n_running = usable_cpus());
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  std::size_t n_threads() const;

  // Calls function over disjoint ranges that cover [0, n_items), each of at most `grain` items (>= 1; more where there
  // are over 2^24 of them): to each thread an equal part of them in order; one that has ended its own helps the others
  // from the end. Returns when all are done (one barrier).
  // A thread that is late because its core serves another process is not waited for, only one with an item in work.
  // No allocation, no lock. The callable must not throw. `thread` is in [0, n_threads).
  void parallel_for(std::size_t n_items, std::size_t grain, RangeFunction function);

  // Told of every loop that several threads were called to, when it has ended, on the thread that called them; empty:
  // of none. For benchmarks: reading the clock makes a loop about 0.1 us longer. Not to be changed within a loop.
  void set_watch(std::function<void(const LoopTimes&)> watch);

 private:
  struct State;
  void end_workers();
  std::unique_ptr<State> state_;
};

}  // namespace quern::base
