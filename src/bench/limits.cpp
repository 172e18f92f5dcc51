#include "bench/limits.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "base/buffer.hpp"
#include "bench/machine.hpp"
#include "engine/limits.hpp"
#include "kernels/peak.hpp"

namespace quern::bench {

namespace {

using WallClock = std::chrono::steady_clock;

double seconds_since(WallClock::time_point start) {
  return std::chrono::duration<double>(WallClock::now() - start).count();
}

constexpr double kPassSeconds = 0.01;

// Operands of every thread, apart from each other.
class Operands {
 public:
  explicit Operands(std::size_t n_threads) : bytes_(3 * kBytes * n_threads) {
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = static_cast<std::byte>(i % 4 < 2 ? 0 : i % 4 == 2 ? 1 + i % 13 : 0x30);  // small floats too
  }
  kernels::PeakArgs of(std::size_t thread, std::uint64_t rounds) {
    std::byte* base = bytes_.data() + 3 * kBytes * thread;
    return {base, base + kBytes, base + 2 * kBytes, rounds};
  }

 private:
  static constexpr std::size_t kBytes = kernels::PeakArgs::kBytes;
  base::Buffer<std::byte> bytes_;
};

// One pass: an item for every thread; the time is that of the slowest.
struct Pass {
  double operations, seconds;
};
Pass run_pass(kernels::PeakLoop loop, base::ThreadPool& pool, Operands& operands, std::uint64_t rounds) {
  std::atomic<std::uint64_t> operations{0};
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i)
      operations.fetch_add(loop(operands.of(i, rounds)), std::memory_order_relaxed);
  };
  const WallClock::time_point start = WallClock::now();
  pool.parallel_for(pool.n_threads(), 1, work);
  return {static_cast<double>(operations.load()), seconds_since(start)};
}

double peak(kernels::PeakLoop loop, base::ThreadPool& pool, double seconds) {
  Operands operands(pool.n_threads());
  std::uint64_t rounds = 64;
  double best = 0;
  const WallClock::time_point start = WallClock::now();
  do {
    const Pass pass = run_pass(loop, pool, operands, rounds);
    best = std::max(best, pass.operations / pass.seconds);
    // As many as take a pass at the best speed so far: one pass that was interrupted does not decide.
    const double wanted = best * kPassSeconds / (pass.operations / static_cast<double>(rounds));
    rounds = static_cast<std::uint64_t>(std::clamp(wanted, 64.0, 1e12));
  } while (seconds_since(start) < seconds);
  return best;
}

}  // namespace

Limits measure_limits(const kernels::Kernels& kernels, base::ThreadPool& pool, double seconds) {
  Limits limits;
  limits.cpu = machine_info().cpu;
  limits.isa = kernels.name;
  limits.n_threads = pool.n_threads();
  const kernels::PeakLoops& loops = kernels::peak_loops(kernels);
  limits.read_bytes_per_s = engine::measure_read_bandwidth(pool, seconds / 2);
  limits.int8_ops_per_s = peak(loops.int8, pool, seconds / 6);
  limits.bf16_ops_per_s = peak(loops.bf16, pool, seconds / 6);
  limits.f32_ops_per_s = peak(loops.f32, pool, seconds / 6);
  return limits;
}

}  // namespace quern::bench
