// The markdown table, and below it the machine and the verdict.

#include <algorithm>
#include <cmath>
#include <iomanip>

#include "base/strings.hpp"
#include "bench/report.hpp"

namespace quern::bench {

namespace {

std::string fixed(double value, int digits) {
  return base::cat(std::fixed, std::setprecision(digits), value);
}

std::string percent(const std::optional<double>& share) {
  return share ? base::cat(" (", fixed(100 * *share, 0), " %)") : "";
}

struct Column {
  std::string name;
  bool right = true;
  std::vector<std::string> cells = {};
};

using Columns = std::vector<Column>;

std::size_t columns_width(const Column& column) {
  std::size_t width = column.name.size();
  for (const std::string& cell : column.cells) width = std::max(width, cell.size());
  return width;
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, text.size()), ' ');
  return right ? space + text : text + space;
}

// Columns without any content are left out.
std::string table(const Columns& columns, std::size_t n_rows) {
  std::string head = "|", rule = "|";
  std::vector<std::string> lines(n_rows, "|");
  for (const Column& column : columns) {
    const bool empty = std::all_of(column.cells.begin(), column.cells.end(), [](const auto& cell) { return cell.empty(); });
    if (empty && n_rows > 0) continue;
    const std::size_t width = std::max<std::size_t>(4, columns_width(column));
    head += " " + padded(column.name, width, column.right) + " |";
    rule += " " + std::string(width - 1, '-') + (column.right ? ":" : "-") + " |";
    for (std::size_t i = 0; i < n_rows; ++i) lines[i] += " " + padded(column.cells[i], width, column.right) + " |";
  }
  std::string text = head + "\n" + rule + "\n";
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

template <class F>
Column column(const char* name, bool right, const std::vector<Row>& rows, F&& cell) {
  Column out{name, right, {}};
  for (const Row& row : rows) out.cells.push_back(cell(row));
  return out;
}

// A setting has a column where rows differ in it, or it is not the usual.
template <class F>
void add_setting(Columns& columns, const char* name, const std::vector<Row>& rows, const std::string& usual, F&& cell) {
  const bool shown = std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return cell(row) != usual; });
  if (shown) columns.push_back(column(name, true, rows, cell));
}

Columns settings(const std::vector<Row>& rows) {
  Columns c;
  c.push_back(column("model", false, rows, [](const Row& r) { return base::printable(r.model.name, 40); }));
  c.push_back(column("size", true, rows, [](const Row& r) { return base::human_bytes(r.model.size_bytes); }));
  c.push_back(column("params", true, rows,
                     [](const Row& r) { return fixed(static_cast<double>(r.model.n_params) / 1e6, 2) + " M"; }));
  c.push_back(column("threads", true, rows, [](const Row& r) { return std::to_string(r.one.n_threads); }));
  add_setting(c, "n_batch", rows, "2048", [](const Row& r) { return std::to_string(r.one.n_batch); });
  add_setting(c, "n_ubatch", rows, "512", [](const Row& r) { return std::to_string(r.one.n_ubatch); });
  add_setting(c, "type_k", rows, "", [](const Row& r) { return r.one.k_type; });
  add_setting(c, "type_v", rows, "", [](const Row& r) { return r.one.v_type; });
  return c;
}

std::string interval(const Summary& s) {
  if (s.n < 2) return fixed(s.median, 2);
  return base::cat(fixed(s.median, 2), " [", fixed(s.interval.low, 2), ", ", fixed(s.interval.high, 2), "]");
}

std::string milliseconds(const std::optional<double>& ns, int digits = 2) {
  return ns ? fixed(*ns / 1e6, digits) : "";
}

std::string step_times(const Figures& f) {
  if (!f.token_p50_ns) return "";
  return base::cat(milliseconds(f.token_p50_ns), " / ", milliseconds(f.token_p95_ns), " / ", milliseconds(f.token_p99_ns));
}

std::string giga(const std::optional<double>& per_second, const std::optional<double>& share, int digits) {
  return per_second ? fixed(*per_second / 1e9, digits) + percent(share) : "";
}

void add_common(Columns& c, const std::vector<Row>& rows) {
  c.push_back(column("ms/token p50 / p95 / p99", true, rows, [](const Row& r) { return step_times(figures_of(r)); }));
  c.push_back(column("GB/s", true, rows, [](const Row& r) {
    const Figures f = figures_of(r);
    return giga(f.bytes_per_s, f.bytes_share, 1);
  }));
  c.push_back(column("GOP/s", true, rows, [](const Row& r) {
    const Figures f = figures_of(r);
    return giga(f.ops_per_s, f.ops_share, 0);
  }));
  c.push_back(column("perplexity", true, rows,
                     [](const Row& r) { return r.perplexity ? fixed(*r.perplexity, 3) : std::string(); }));
}

std::string plain_table(const std::vector<Row>& rows) {
  Columns c = settings(rows);
  c.push_back(column("test", true, rows, [](const Row& r) { return r.one.label(); }));
  c.push_back(column("t/s", true, rows, [](const Row& r) {
    const Figures f = figures_of(r);
    return fixed(f.ts.mean, 2) + " +- " + fixed(f.ts.deviation, 2);
  }));
  c.push_back(column("median [95 %]", true, rows, [](const Row& r) { return interval(figures_of(r).ts); }));
  c.push_back(column("TTFT ms", true, rows, [](const Row& r) { return milliseconds(figures_of(r).ttft_ns, 1); }));
  add_common(c, rows);
  return table(c, rows.size());
}

std::string part(const std::optional<Summary>& s) {
  return s ? fixed(s->median, 2) : "";
}

// The columns of llama-batched-bench: what the prompts and the answers of B sequences took.
std::string batched_table(const std::vector<Row>& rows) {
  Columns c = settings(rows);
  const auto number = [&](const char* name, auto&& value) {
    c.push_back(column(name, true, rows, [&](const Row& r) { return std::to_string(value(r)); }));
  };
  number("PP", [](const Row& r) { return r.one.n_prompt; });
  number("TG", [](const Row& r) { return r.one.n_gen; });
  number("B", [](const Row& r) { return r.one.n_parallel; });
  number("N_KV", [](const Row& r) { return r.one.n_parallel * r.one.held(); });
  c.push_back(column("S_PP t/s", true, rows, [](const Row& r) { return part(figures_of(r).prompt_ts); }));
  c.push_back(column("S_TG t/s", true, rows, [](const Row& r) { return part(figures_of(r).gen_ts); }));
  c.push_back(column("S t/s [95 %]", true, rows, [](const Row& r) { return interval(figures_of(r).ts); }));
  add_common(c, rows);
  return table(c, rows.size());
}

std::string machine_lines(const Circumstances& run) {
  const Counters& c = run.counters;
  std::string text = base::cat("\n", run.machine.cpu, ", ", run.machine.n_cpus, " CPUs, ", run.isa, ", quern ", run.version,
                               run.commit.empty() ? "" : " (" + run.commit + ")", "\n");
  text += base::cat("clock ", std::lround(run.clock_before.mean_mhz), " -> ", std::lround(run.clock_after.mean_mhz), " MHz");
  if (!run.machine.governor.empty()) text += ", governor " + run.machine.governor;
  if (run.load_before && run.load_after)
    text += base::cat(", load ", fixed(*run.load_before, 2), " -> ", fixed(*run.load_after, 2));
  const double cpu_seconds = c.wall_seconds * static_cast<double>(run.machine.n_cpus);
  const auto of_time = [&](double seconds) { return fixed(cpu_seconds > 0 ? 100 * seconds / cpu_seconds : 0, 1) + " %"; };
  if (c.busy_seconds) text += ", others " + of_time(std::max(0.0, *c.busy_seconds - c.own_cpu_seconds));
  if (c.steal_seconds) text += ", steal " + of_time(*c.steal_seconds);
  text += c.throttled_periods ? base::cat(", throttled ", *c.throttled_periods, " periods") : ", throttling not told";
  text += base::cat("\nRSS ", base::human_bytes(run.rss_bytes), ", peak ", base::human_bytes(run.peak_rss_bytes),
                    ", page faults ", c.minor_faults, " minor, ", c.major_faults, " major, ", c.involuntary_switches,
                    " involuntary switches\n");
  return text;
}

}  // namespace

std::string limits_text(const Limits& l) {
  return base::cat("limits of ", l.n_threads, l.n_threads == 1 ? " thread" : " threads", " (", l.isa, "): reads ",
                   fixed(l.read_bytes_per_s / 1e9, 1), " GB/s, int8 ", fixed(l.int8_ops_per_s / 1e9, 0), " GOP/s, bf16 ",
                   fixed(l.bf16_ops_per_s / 1e9, 0), " GFLOP/s, f32 ", fixed(l.f32_ops_per_s / 1e9, 0), " GFLOP/s\n");
}

std::string table_text(const Circumstances& run, const std::vector<Row>& rows) {
  std::vector<Row> plain, batched;
  for (const Row& row : rows) (row.one.n_parallel == 0 ? plain : batched).push_back(row);
  std::string text;
  if (!plain.empty()) text += plain_table(plain);
  if (!batched.empty()) text += batched_table(batched);
  text += machine_lines(run);
  std::vector<std::size_t> told;
  for (const Row& row : rows) {
    const std::size_t threads = row.limits.n_threads;
    if (threads == 0 || std::find(told.begin(), told.end(), threads) != told.end()) continue;
    told.push_back(threads);
    text += limits_text(row.limits);
  }
  return text + verdict_line(doubts(run, rows)) + "\n";
}

}  // namespace quern::bench
