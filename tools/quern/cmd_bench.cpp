// quern bench: speed of prompts (pp N) and answers (tg N), at a depth, alone or together, with what it takes to believe
// the figures. Labels and keys of llama-bench. Input is pseudo-random token ids; tokenizing and sampling are not
// measured.

#include <chrono>
#include <ctime>
#include <iostream>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "bench/compare.hpp"
#include "bench/limits_file.hpp"
#include "bench_against.hpp"
#include "bench_bed.hpp"
#include "bench_eval.hpp"
#include "bench_options.hpp"
#include "bench_worker.hpp"
#include "command.hpp"
#include "kernels/select.hpp"
#include "model_options.hpp"
#include "signals.hpp"
#include "version.hpp"

namespace quern::tool {

namespace {

constexpr double kQuickLimitSeconds = 0.5, kLimitSeconds = 3;
constexpr std::size_t kMaxBaseBytes = std::size_t{256} << 20;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// --limits without a model.
int print_limits(const BenchOptions& options) {
  base::Json list = base::Json::array();
  for (const std::size_t threads : thread_counts(options)) {
    base::ThreadPool pool(threads);
    const bench::Limits limits = bench::measure_limits(kernels::select_kernels(options.isa), pool, kLimitSeconds);
    if (!bench::limits_path().empty()) bench::store_limits(bench::limits_path(), limits);
    if (options.format == "md") std::cout << bench::limits_text(limits);
    list.push_back(bench::limits_json(limits));
  }
  if (options.format != "md") std::cout << list.dump(2) << "\n";
  if (bench::limits_path().empty()) std::cerr << "quern: note: not stored, neither XDG_CACHE_HOME nor HOME is set\n";
  else std::cerr << "stored in " << base::printable(bench::limits_path().string()) << "\n";
  return 0;
}

// Of each number of threads once, for all its rows; the stored ones tell whether this moment is a poor one.
void measure_limits(BenchBed& bed, const BenchOptions& options, bench::Circumstances& run) {
  if (options.no_limits) return;
  const std::vector<bench::Limits> stored =
      options.limits ? std::vector<bench::Limits>{} : bench::read_limits_file(bench::limits_path());
  std::map<std::size_t, bench::Limits> known;
  for (bench::Row& row : bed.rows()) {
    const std::size_t threads = row.one.n_threads;
    if (!known.contains(threads) && !interrupted()) {
      known[threads] =
          bench::measure_limits(bed.kernels(), bed.pool(threads), options.limits ? kLimitSeconds : kQuickLimitSeconds);
      if (options.limits && !bench::limits_path().empty()) bench::store_limits(bench::limits_path(), known[threads]);
      if (const bench::Limits* earlier = bench::find_limits(stored, known[threads].cpu, run.isa, threads))
        run.stored_read_bytes_per_s = std::max(run.stored_read_bytes_per_s, earlier->read_bytes_per_s);
    }
    row.limits = known[threads];
  }
}

void say(const BenchOptions& options, const std::string& text) {
  if (options.progress) std::cerr << "quern bench: " << text << "\n";
}

// Round after round over all rows, so that what changes with time changes all of them alike.
void measure(BenchBed& bed, const BenchOptions& options, bench::Circumstances& run) {
  std::vector<bench::Row>& rows = bed.rows();
  bench::Timing timing;
  for (std::size_t i = 0; i < rows.size() && !options.no_warmup && !interrupted(); ++i) {
    say(options, "warm-up of " + rows[i].one.label());
    bed.run(i, timing);
  }
  run.clock_before = bench::read_clock();
  for (std::size_t round = 0; round < options.repetitions; ++round)
    for (std::size_t i = 0; i < rows.size() && !interrupted(); ++i) {
      say(options, base::cat(rows[i].one.label(), ", repetition ", round + 1, " of ", options.repetitions));
      const bench::Counters before = bench::read_counters();
      if (!bed.run(i, timing)) break;
      const bench::Counters spent = bench::read_counters() - before;
      rows[i].counters += spent;
      run.counters += spent;
      rows[i].timings.push_back(timing);
    }
  run.clock_after = bench::read_clock();
  run.load_after = bench::load_average();
  run.rss_bytes = bench::rss_bytes();
  run.peak_rss_bytes = bench::peak_rss_bytes();
  run.interrupted = interrupted();
}

void evaluate(BenchBed& bed, const BenchOptions& options, const std::string& text) {
  std::map<std::tuple<std::size_t, std::string, std::string>, double> known;
  for (bench::Row& row : bed.rows()) {
    const auto key = std::tuple(row.one.model, row.one.k_type, row.one.v_type);
    if (interrupted()) return;
    if (!known.contains(key))
      known[key] = bench_perplexity(bed.model(row.one.model), bed.pool(row.one.n_threads),
                                    {text, base::printable(options.eval), options.eval_tokens,
                                     parse_cache_type(row.one.k_type, "-ctk"), parse_cache_type(row.one.v_type, "-ctv")});
    if (!interrupted()) row.perplexity = known[key];
  }
}

bench::Circumstances circumstances(const BenchBed& bed, const BenchOptions& options) {
  bench::Circumstances run;
  run.version = version();
  run.commit = commit();
  run.test_time = utc_now();
  run.isa = bed.kernels().name;
  run.machine = bench::machine_info();
  run.load_before = bench::load_average();
  run.repetitions = options.repetitions;
  return run;
}

void print(const BenchOptions& options, const bench::Circumstances& run, const std::vector<bench::Row>& rows) {
  const bench::ReportOptions report{options.step_times};
  const bench::Format format = bench::parse_format("-o", options.format);
  std::cout << bench::report_text(format, run, rows, report);
  if (!options.format_error.empty())
    std::cerr << bench::report_text(bench::parse_format("-oe", options.format_error), run, rows, report);
  const std::vector<std::string> reasons = bench::doubts(run, rows);
  if (format != bench::Format::md && !reasons.empty()) std::cerr << bench::verdict_line(reasons) << "\n";
}

int run_bench(const BenchOptions& options) {
  std::vector<bench::BaseRow> base_rows;
  const std::string where = base::printable(options.compare);
  if (!options.compare.empty()) base_rows = bench::parse_base(base::read_text_file(options.compare, kMaxBaseBytes), where);
  const std::string text = options.eval.empty() ? "" : read_input(options.eval);
  BenchBed bed(options);
  catch_signals();
  bench::Circumstances run = circumstances(bed, options);
  measure_limits(bed, options, run);
  measure(bed, options, run);
  if (!options.eval.empty()) evaluate(bed, options, text);
  std::vector<bench::Row> rows = bed.rows();
  std::erase_if(rows, [](const bench::Row& row) { return row.timings.empty(); });
  if (!rows.empty()) print(options, run, rows);
  if (options.compare.empty() || rows.empty()) return 0;
  const bench::Comparison comparison = bench::compare(rows, base_rows, options.effect_percent / 100, where);
  (options.format == "md" ? std::cout : std::cerr) << bench::comparison_text(comparison);
  return comparison.regressed() ? static_cast<int>(base::ExitCode::items_failed) : 0;
}

}  // namespace

int cmd_bench(const std::vector<std::string>& arguments) {
  CLI::App app("Measures the speed of prompts (pp) and answers (tg), and whether to believe it.", "quern bench");
  BenchOptions options;
  add_bench_options(app, options);
  if (parse_arguments(app, arguments)) return 0;
  check_bench_options(options);
  if (options.worker) {
    BenchBed bed(options);
    return run_bench_worker(bed);
  }
  if (options.models.empty()) return print_limits(options);
  if (!options.against.empty()) return run_bench_against(options, expand_aliases(arguments));
  return run_bench(options);
}

}  // namespace quern::tool
