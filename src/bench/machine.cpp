#include "bench/machine.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/strings.hpp"

namespace quern::bench {

namespace {

// "" when it cannot be read; files of /proc and /sys are small.
std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

std::string_view trimmed(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\n'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

// Calls line(key, value) for "key<separator>value" lines.
template <class F>
void for_lines(std::string_view text, char separator, F&& line) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t at = one.find(separator);
    if (at != std::string_view::npos) line(trimmed(one.substr(0, at)), trimmed(one.substr(at + 1)));
  }
}

double number_of(std::string_view text) {
  return std::strtod(std::string(text).c_str(), nullptr);
}

// The cgroup's cpu.stat, v2 or v1; its own path first, then the mount's root.
std::string cgroup_cpu_stat() {
  std::string path;
  for_lines(text_of("/proc/self/cgroup"), ':', [&](std::string_view id, std::string_view rest) {
    const std::size_t colon = rest.find(':');
    if (id == "0" && colon != std::string_view::npos) path = rest.substr(colon + 1);
  });
  for (const std::string& file : {base::cat("/sys/fs/cgroup", path == "/" ? "" : path, "/cpu.stat"),
                                  std::string("/sys/fs/cgroup/cpu.stat"), std::string("/sys/fs/cgroup/cpu/cpu.stat")}) {
    std::string text = text_of(file);
    if (!text.empty()) return text;
  }
  return {};
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

template <class T>
std::optional<T> difference(const std::optional<T>& after, const std::optional<T>& before) {
  return after && before ? std::optional<T>(*after - *before) : std::nullopt;
}

template <class T>
void add(std::optional<T>& sum, const std::optional<T>& more) {
  if (more) sum = sum.value_or(T{}) + *more;
}

}  // namespace

std::optional<CpuTicks> parse_proc_stat(std::string_view text) {
  if (text.substr(0, 4) != "cpu ") return std::nullopt;
  std::istringstream line{std::string(text.substr(4, text.find('\n') - 4))};
  double field[8] = {};  // user nice system idle iowait irq softirq steal
  for (double& value : field)
    if (!(line >> value)) return std::nullopt;
  return CpuTicks{field[0] + field[1] + field[2] + field[5] + field[6], field[7]};
}

std::string parse_cpu_model(std::string_view cpuinfo) {
  std::string model;
  for_lines(cpuinfo, ':', [&](std::string_view key, std::string_view value) {
    if (model.empty() && (key == "model name" || key == "Model" || key == "cpu")) model = value;
  });
  return model.empty() ? "unknown CPU" : model;
}

Clock parse_cpu_clock(std::string_view cpuinfo) {
  Clock clock;
  double n = 0;
  for_lines(cpuinfo, ':', [&](std::string_view key, std::string_view value) {
    if (key != "cpu MHz") return;
    const double mhz = number_of(value);
    clock.min_mhz = n == 0 ? mhz : std::min(clock.min_mhz, mhz);
    clock.max_mhz = std::max(clock.max_mhz, mhz);
    clock.mean_mhz += mhz;
    ++n;
  });
  if (n > 0) clock.mean_mhz /= n;
  return clock;
}

std::optional<std::uint64_t> parse_throttled(std::string_view cpu_stat) {
  std::optional<std::uint64_t> periods;
  for_lines(cpu_stat, ' ', [&](std::string_view key, std::string_view value) {
    if (key == "nr_throttled") periods = static_cast<std::uint64_t>(number_of(value));
  });
  return periods;
}

std::string parse_selected(std::string_view text) {
  const std::size_t open = text.find('['), close = text.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return std::string(text.substr(open + 1, close - open - 1));
}

MachineInfo machine_info() {
  MachineInfo info;
  info.cpu = parse_cpu_model(text_of("/proc/cpuinfo"));
  info.n_cpus = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  info.governor = trimmed(text_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  info.huge_pages = parse_selected(text_of("/sys/kernel/mm/transparent_hugepage/enabled"));
  return info;
}

Counters read_counters() {
  Counters c;
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    c.own_cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    c.minor_faults = static_cast<std::uint64_t>(usage.ru_minflt);
    c.major_faults = static_cast<std::uint64_t>(usage.ru_majflt);
    c.involuntary_switches = static_cast<std::uint64_t>(usage.ru_nivcsw);
  }
  const double ticks = static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  if (const auto stat = parse_proc_stat(text_of("/proc/stat"))) {
    c.busy_seconds = stat->busy / ticks;
    c.steal_seconds = stat->steal / ticks;
  }
  c.throttled_periods = parse_throttled(cgroup_cpu_stat());
  c.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  return c;
}

Counters operator-(const Counters& after, const Counters& before) {
  Counters d;
  d.own_cpu_seconds = after.own_cpu_seconds - before.own_cpu_seconds;
  d.minor_faults = after.minor_faults - before.minor_faults;
  d.major_faults = after.major_faults - before.major_faults;
  d.involuntary_switches = after.involuntary_switches - before.involuntary_switches;
  d.busy_seconds = difference(after.busy_seconds, before.busy_seconds);
  d.steal_seconds = difference(after.steal_seconds, before.steal_seconds);
  d.throttled_periods = difference(after.throttled_periods, before.throttled_periods);
  d.wall_seconds = after.wall_seconds - before.wall_seconds;
  return d;
}

Counters& Counters::operator+=(const Counters& other) {
  own_cpu_seconds += other.own_cpu_seconds;
  minor_faults += other.minor_faults;
  major_faults += other.major_faults;
  involuntary_switches += other.involuntary_switches;
  add(busy_seconds, other.busy_seconds);
  add(steal_seconds, other.steal_seconds);
  add(throttled_periods, other.throttled_periods);
  wall_seconds += other.wall_seconds;
  return *this;
}

// cpufreq tells the clock of now; /proc/cpuinfo tells it too on most x86 kernels, and a constant in some guests.
Clock read_clock() {
  Clock clock;
  double n = 0;
  for (std::size_t cpu = 0; cpu < 1024; ++cpu) {
    const std::string text =
        text_of(base::cat("/sys/devices/system/cpu/cpu", cpu, "/cpufreq/scaling_cur_freq"));
    if (text.empty()) break;
    const double mhz = number_of(text) / 1000;
    clock.min_mhz = n == 0 ? mhz : std::min(clock.min_mhz, mhz);
    clock.max_mhz = std::max(clock.max_mhz, mhz);
    clock.mean_mhz += mhz;
    ++n;
  }
  if (n == 0) return parse_cpu_clock(text_of("/proc/cpuinfo"));
  clock.mean_mhz /= n;
  return clock;
}

std::optional<double> load_average() {
  double one = 0;
  if (::getloadavg(&one, 1) != 1) return std::nullopt;
  return one;
}

std::uint64_t rss_bytes() {
  std::istringstream statm(text_of("/proc/self/statm"));
  std::uint64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_PAGESIZE)));
}

std::uint64_t peak_rss_bytes() {
  rusage usage{};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<std::uint64_t>(usage.ru_maxrss) * 1024 : 0;
}

}  // namespace quern::bench
