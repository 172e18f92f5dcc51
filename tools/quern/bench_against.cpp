#include "bench_against.hpp"

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <memory>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "bench/statistics.hpp"
#include "bench_bed.hpp"
#include "bench_worker.hpp"
#include "signals.hpp"

namespace quern::tool {

namespace {

using WallClock = std::chrono::steady_clock;

// Pairs between two launches of both programs: where memory falls is fixed for the life of a process, and would
// otherwise be taken for a difference of the programs.
constexpr std::size_t kPairsPerLaunch = 10;
constexpr std::size_t kMinLaunches = 2;

struct Compared {
  std::string name;
  std::vector<bench::Pair> pairs;
  bench::PairedResult result;
  double seconds = 0;
  bool open = true;
};

double seconds_since(WallClock::time_point start) {
  return std::chrono::duration<double>(WallClock::now() - start).count();
}

// What the children get: everything but the comparison itself.
std::vector<std::string> child_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--against" || word == "--effect" || word == "--budget") {
      ++i;
      continue;
    }
    const auto begins = [&](std::string_view name) { return word.rfind(name, 0) == 0; };
    if (!begins("--against=") && !begins("--effect=") && !begins("--budget=")) out.push_back(word);
  }
  return out;
}

std::optional<bench::Pair> measure_pair(BenchWorker& mine, BenchWorker& other, std::size_t row, bool mine_first) {
  BenchWorker& first = mine_first ? mine : other;
  BenchWorker& second = mine_first ? other : mine;
  const auto a = first.run(row);
  const auto b = a ? second.run(row) : std::nullopt;
  if (!a || !b) return std::nullopt;
  const double ns_a = static_cast<double>(*a), ns_b = static_cast<double>(*b);
  return mine_first ? bench::Pair{ns_a, ns_b} : bench::Pair{ns_b, ns_a};
}

class Contest {
 public:
  Contest(const BenchOptions& options, std::vector<std::string> arguments)
      : options_(options), arguments_(std::move(arguments)) {
    paired_.effect = options.effect_percent / 100;
  }

  // False: interrupted.
  bool run(std::vector<Compared>& rows) {
    for (std::size_t launch = 0; std::any_of(rows.begin(), rows.end(), [](const Compared& r) { return r.open; }); ++launch)
      if (!run_launch(rows, launch)) return false;
    return true;
  }

 private:
  bool run_launch(std::vector<Compared>& rows, std::size_t launch) {
    const WallClock::time_point start = WallClock::now();
    BenchWorker mine("/proc/self/exe", arguments_), other(options_.against, arguments_);
    if (interrupted()) return false;
    if (mine.n_rows() != rows.size() || other.n_rows() != rows.size())
      base::environment_error(base::printable(options_.against),
                              base::cat("measures other rows (got ", other.n_rows(), ", expected ", rows.size(), ")"));
    const double loading = seconds_since(start) / static_cast<double>(rows.size());
    for (std::size_t row = 0; row < rows.size(); ++row)  // warm-up
      if (rows[row].open && !measure_pair(mine, other, row, true)) return false;
    for (std::size_t pair = 0; pair < kPairsPerLaunch; ++pair)
      for (std::size_t row = 0; row < rows.size(); ++row)
        if (rows[row].open && !add_pair(rows[row], mine, other, row, (pair + launch) % 2 == 0)) return false;
    for (Compared& row : rows) {
      if (!row.open) continue;
      row.seconds += loading;
      row.result = bench::compare_pairs(row.pairs, paired_);
      const bool decided = row.result.outcome != bench::Outcome::undecided && launch + 1 >= kMinLaunches;
      row.open = !decided && (row.seconds < options_.budget_seconds || launch + 1 < kMinLaunches);
    }
    return true;
  }

  static bool add_pair(Compared& row, BenchWorker& mine, BenchWorker& other, std::size_t index, bool mine_first) {
    const WallClock::time_point start = WallClock::now();
    const auto pair = measure_pair(mine, other, index, mine_first);
    if (!pair) return false;
    row.pairs.push_back(*pair);
    row.seconds += seconds_since(start);
    return true;
  }

  const BenchOptions& options_;
  std::vector<std::string> arguments_;
  bench::PairedOptions paired_;
};

const char* word_of(bench::Outcome outcome) {
  switch (outcome) {
    case bench::Outcome::same: return "same";
    case bench::Outcome::slower: return "SLOWER";
    case bench::Outcome::faster: return "faster";
    case bench::Outcome::undecided: break;
  }
  return "undecided";
}

double median_ms(const std::vector<bench::Pair>& pairs, double bench::Pair::*side) {
  std::vector<double> values;
  for (const bench::Pair& pair : pairs) values.push_back(pair.*side / 1e6);
  return bench::summarize(std::move(values)).median;
}

void print_text(const Compared& row) {
  std::cout << word_of(row.result.outcome) << ": " << row.name << std::fixed << std::setprecision(2) << ": "
            << median_ms(row.pairs, &bench::Pair::mine) << " ms against " << median_ms(row.pairs, &bench::Pair::other)
            << " ms, time x " << std::setprecision(3) << row.result.ratio << " [" << row.result.interval.low << ", "
            << row.result.interval.high << "] (99 %), " << row.result.n << " pairs\n";
}

base::Json json_of(const Compared& row) {
  base::Json mine = base::Json::array(), other = base::Json::array();
  for (const bench::Pair& pair : row.pairs) {
    mine.push_back(pair.mine);
    other.push_back(pair.other);
  }
  return {{"test", row.name},
          {"outcome", base::Json(word_of(row.result.outcome))},
          {"ratio", row.result.ratio},
          {"ci_low", row.result.interval.low},
          {"ci_high", row.result.interval.high},
          {"ci_coverage", row.result.interval.coverage},
          {"mine_ns", mine},
          {"other_ns", other}};
}

std::vector<Compared> rows_of(const BenchOptions& options) {
  std::vector<Compared> rows;
  BenchBed bed(options);  // also checks every option before a child starts
  for (const bench::Row& row : bed.rows())
    rows.push_back({base::cat(row.one.label(), ", ", row.one.n_threads, " threads, cache ", row.one.k_type, "/",
                              row.one.v_type),
                    {}, {}, 0, true});
  return rows;
}

}  // namespace

int run_bench_against(const BenchOptions& options, const std::vector<std::string>& arguments) {
  std::vector<Compared> rows = rows_of(options);
  catch_signals();
  if (!Contest(options, child_arguments(arguments)).run(rows)) return 0;
  bool slower = false;
  base::Json list = base::Json::array();
  for (const Compared& row : rows) {
    slower = slower || row.result.outcome == bench::Outcome::slower;
    if (options.format == "json") list.push_back(json_of(row));
    else print_text(row);
    if (row.result.outcome == bench::Outcome::undecided)
      std::cerr << "quern: note: " << row.name << ": undecided within --budget, the machine is too noisy for "
                << options.effect_percent << " %\n";
  }
  if (options.format == "json") std::cout << list.dump(2) << "\n";
  return slower ? static_cast<int>(base::ExitCode::items_failed) : 0;
}

}  // namespace quern::tool
