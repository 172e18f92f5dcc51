// The machine around a measurement, read from Linux: which CPU, its clock, and the counters that tell whether
// somebody else had it meanwhile (steal, other processes, throttling, page faults). What a kernel or container does
// not tell is absent, never zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quern::bench {

struct MachineInfo {
  std::string cpu;       // "AMD EPYC 7B13"
  std::size_t n_cpus = 0;  // online
  std::string governor;  // of cpu0; "" where the kernel does not say
  std::string huge_pages;  // transparent_hugepage/enabled: "always", "madvise", "never", ""
};
MachineInfo machine_info();

// Monotone counters; a difference of two says what happened between them.
struct Counters {
  double own_cpu_seconds = 0;  // of this process, all threads
  std::uint64_t minor_faults = 0, major_faults = 0, involuntary_switches = 0;
  std::optional<double> busy_seconds, steal_seconds;  // of all CPUs of the machine
  std::optional<std::uint64_t> throttled_periods;     // of this cgroup, by its CPU quota
  double wall_seconds = 0;

  Counters& operator+=(const Counters& other);
};
Counters read_counters();
Counters operator-(const Counters& after, const Counters& before);

struct Clock {
  double mean_mhz = 0, min_mhz = 0, max_mhz = 0;  // over the CPUs; 0: not known
};
Clock read_clock();
std::optional<double> load_average();  // of one minute
std::uint64_t rss_bytes();             // now
std::uint64_t peak_rss_bytes();        // of this process so far

// The readers of the files' texts, for tests.
struct CpuTicks {
  double busy = 0, steal = 0;  // in ticks
};
std::optional<CpuTicks> parse_proc_stat(std::string_view text);
std::string parse_cpu_model(std::string_view cpuinfo);
Clock parse_cpu_clock(std::string_view cpuinfo);
std::optional<std::uint64_t> parse_throttled(std::string_view cpu_stat);
std::string parse_selected(std::string_view text);  // "always [madvise] never" -> "madvise"

}  // namespace quern::bench
