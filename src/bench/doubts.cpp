// The verdict: what speaks against believing a run. Thresholds are judgement, set for the 5 % that people look for.

#include <cmath>
#include <iomanip>

#include "base/strings.hpp"
#include "bench/result.hpp"

namespace quern::bench {

namespace {

constexpr double kMaxError = 0.05;         // half the median's interval, of the median
constexpr double kMaxDrift = 0.05;         // between the first and the second half of a row's repetitions
constexpr double kMaxSteal = 0.01;         // of the CPUs' time
constexpr double kMaxOthers = 0.05;        // of the CPUs' time, by other processes
constexpr double kMaxClockChange = 0.05;
constexpr double kMinBandwidth = 0.8;      // of what --limits stored
constexpr std::size_t kMinRepetitions = 3;
constexpr std::size_t kMaxRowsNamed = 3;

std::string percent(double fraction) {
  return base::cat(std::fixed, std::setprecision(1), 100 * fraction, " %");
}

// "tg128, pp512 and 4 more"
std::string names(const std::vector<std::string>& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size() && i < kMaxRowsNamed; ++i) text += (i == 0 ? "" : ", ") + rows[i];
  if (rows.size() > kMaxRowsNamed) text += base::cat(" and ", rows.size() - kMaxRowsNamed, " more");
  return text;
}

void doubt_rows(const std::vector<Row>& rows, std::vector<std::string>& out) {
  std::vector<std::string> wide, moved, few, disk;
  for (const Row& row : rows) {
    const Figures f = figures_of(row);
    if (row.timings.size() < kMinRepetitions) few.push_back(row.one.label());
    else if (f.ts.relative_error() > kMaxError)
      wide.push_back(base::cat(row.one.label(), " +- ", percent(f.ts.relative_error())));
    std::vector<double> times;
    for (const Timing& timing : row.timings) times.push_back(static_cast<double>(timing.total_ns));
    const double ratio = drift(times);
    if (std::abs(ratio - 1) > kMaxDrift) moved.push_back(base::cat(row.one.label(), " ", percent(ratio - 1)));
    if (row.counters.major_faults > 0) disk.push_back(base::cat(row.one.label(), " ", row.counters.major_faults));
  }
  if (!few.empty())
    out.push_back(base::cat("fewer than ", kMinRepetitions, " repetitions show no noise (", names(few), ")"));
  if (!wide.empty()) out.push_back(base::cat("repetitions spread widely (", names(wide), ")"));
  if (!moved.empty()) out.push_back(base::cat("times drifted between the first and the second half (", names(moved), ")"));
  if (!disk.empty()) out.push_back(base::cat("pages came from disk: major faults (", names(disk), ")"));
}

void doubt_machine(const Circumstances& run, std::vector<std::string>& out) {
  const Counters& c = run.counters;
  const double cpu_seconds = c.wall_seconds * static_cast<double>(run.machine.n_cpus);
  if (cpu_seconds > 0 && c.steal_seconds && *c.steal_seconds / cpu_seconds > kMaxSteal)
    out.push_back(base::cat("the hypervisor took ", percent(*c.steal_seconds / cpu_seconds), " of the CPUs' time (steal)"));
  if (cpu_seconds > 0 && c.busy_seconds) {
    const double others = (*c.busy_seconds - c.own_cpu_seconds) / cpu_seconds;
    if (others > kMaxOthers) out.push_back(base::cat("other processes used ", percent(others), " of the CPUs' time"));
  }
  if (c.throttled_periods.value_or(0) > 0)
    out.push_back(base::cat("the cgroup's CPU quota throttled ", *c.throttled_periods, " periods"));
  const double before = run.clock_before.mean_mhz, after = run.clock_after.mean_mhz;
  if (before > 0 && std::abs(after / before - 1) > kMaxClockChange)
    out.push_back(base::cat("the clock went from ", std::lround(before), " to ", std::lround(after), " MHz"));
}

}  // namespace

std::vector<std::string> doubts(const Circumstances& run, const std::vector<Row>& rows) {
  std::vector<std::string> out;
  if (run.interrupted) out.push_back("interrupted before all repetitions were done");
  doubt_rows(rows, out);
  doubt_machine(run, out);
  std::size_t threads = 0;
  double read = 0;
  for (const Row& row : rows) {
    threads = std::max(threads, row.one.n_threads);
    read = std::max(read, row.limits.read_bytes_per_s);
  }
  if (threads > run.machine.n_cpus) out.push_back(base::cat(threads, " threads on ", run.machine.n_cpus, " CPUs"));
  if (read > 0 && run.stored_read_bytes_per_s > 0 && read < kMinBandwidth * run.stored_read_bytes_per_s)
    out.push_back(base::cat("memory reads at ", percent(read / run.stored_read_bytes_per_s), " of what --limits stored"));
  return out;
}

}  // namespace quern::bench
