#include "bench/report.hpp"

#include <filesystem>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::bench {

namespace {

using base::Json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json speeds(const std::optional<Summary>& s) {
  return s ? Json(s->median) : Json(nullptr);
}

void add_machine(Json& out, const Circumstances& run, const Row& row) {
  const Counters& c = row.counters;
  out["n_cpus"] = run.machine.n_cpus;
  out["governor"] = run.machine.governor;
  out["huge_pages"] = run.machine.huge_pages;
  out["clock_mhz_before"] = run.clock_before.mean_mhz;
  out["clock_mhz_after"] = run.clock_after.mean_mhz;
  out["load_before"] = or_null(run.load_before);
  out["load_after"] = or_null(run.load_after);
  out["steal_s"] = or_null(c.steal_seconds);
  out["others_cpu_s"] = c.busy_seconds ? Json(*c.busy_seconds - c.own_cpu_seconds) : Json(nullptr);
  out["own_cpu_s"] = c.own_cpu_seconds;
  out["wall_s"] = c.wall_seconds;
  out["throttled_periods"] = or_null(c.throttled_periods);
  out["minor_faults"] = c.minor_faults;
  out["major_faults"] = c.major_faults;
  out["involuntary_switches"] = c.involuntary_switches;
  out["rss_bytes"] = run.rss_bytes;
  out["peak_rss_bytes"] = run.peak_rss_bytes;
}

void add_figures(Json& out, const Row& row, const Figures& f) {
  out["avg_ns"] = static_cast<std::uint64_t>(f.ns.mean + 0.5);
  out["stddev_ns"] = static_cast<std::uint64_t>(f.ns.deviation + 0.5);
  out["avg_ts"] = f.ts.mean;
  out["stddev_ts"] = f.ts.deviation;
  out["median_ns"] = static_cast<std::uint64_t>(f.ns.median + 0.5);
  out["median_ts"] = f.ts.median;
  out["ci_low_ts"] = f.ts.interval.low;
  out["ci_high_ts"] = f.ts.interval.high;
  out["ci_coverage"] = f.ts.interval.coverage;
  out["prompt_ts"] = speeds(f.prompt_ts);
  out["gen_ts"] = speeds(f.gen_ts);
  out["ttft_ns"] = or_null(f.ttft_ns);
  out["token_p50_ns"] = or_null(f.token_p50_ns);
  out["token_p95_ns"] = or_null(f.token_p95_ns);
  out["token_p99_ns"] = or_null(f.token_p99_ns);
  out["gen_bytes_per_s"] = or_null(f.bytes_per_s);
  out["gen_bandwidth_share"] = or_null(f.bytes_share);
  out["prompt_ops_per_s"] = or_null(f.ops_per_s);
  out["prompt_peak_share"] = or_null(f.ops_share);
  out["ops_kind"] = f.ops_per_s ? Json(f.integer ? "int8" : "f32") : Json(nullptr);
  out["perplexity"] = or_null(row.perplexity);
}

std::string csv_field(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string plain(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

std::string sql_value(const Json& value) {
  if (value.is_null()) return "NULL";
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (!value.is_string()) return value.dump();
  std::string out = "'";
  for (const char c : value.get<std::string>()) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

// Scalars only: a table has no place for lists.
Json flat(const Json& row) {
  Json out = Json::object();
  for (const auto& [key, value] : row.items())
    if (!value.is_structured()) out[key] = value;
  return out;
}

std::string csv_text(const Json& rows) {
  std::string text;
  for (const Json& row : rows) {
    std::string head, line;
    const Json scalars = flat(row);
    for (const auto& [key, value] : scalars.items()) {
      head += (head.empty() ? "" : ",") + key;
      line += (line.empty() ? "" : ",") + csv_field(plain(value));
    }
    if (text.empty()) text = head + "\n";
    text += line + "\n";
  }
  return text;
}

const char* sql_type(const std::string& key, const Json& value) {
  if (value.is_string() || key == "ops_kind") return "TEXT";
  if (value.is_boolean() || value.is_number_integer() || key == "throttled_periods") return "INTEGER";
  return "REAL";
}

std::string sql_text(const Json& rows) {
  if (rows.empty()) return {};
  std::string columns, names;
  const Json first = flat(rows.front());
  for (const auto& [key, value] : first.items()) {
    columns += base::cat(columns.empty() ? "" : ",\n", "  ", key, " ", sql_type(key, value));
    names += (names.empty() ? "" : ", ") + key;
  }
  std::string text = "CREATE TABLE IF NOT EXISTS quern_bench (\n" + columns + "\n);\n\n";
  for (const Json& row : rows) {
    std::string values;
    const Json scalars = flat(row);
    for (const auto& [key, value] : scalars.items()) values += (values.empty() ? "" : ", ") + sql_value(value);
    text += "INSERT INTO quern_bench (" + names + ") VALUES (" + values + ");\n";
  }
  return text;
}

}  // namespace

Format parse_format(std::string_view option, const std::string& word) {
  constexpr std::pair<std::string_view, Format> kFormats[] = {{"md", Format::md},
                                                              {"csv", Format::csv},
                                                              {"json", Format::json},
                                                              {"jsonl", Format::jsonl},
                                                              {"sql", Format::sql}};
  for (const auto& [name, format] : kFormats)
    if (name == word) return format;
  base::usage_error(option, base::cat("unknown format (got \"", base::printable(word, 40),
                                      "\", expected md, csv, json, jsonl or sql)"));
}

Json limits_json(const Limits& limits) {
  return {{"cpu", limits.cpu},
          {"isa", limits.isa},
          {"n_threads", limits.n_threads},
          {"read_bytes_per_s", limits.read_bytes_per_s},
          {"int8_ops_per_s", limits.int8_ops_per_s},
          {"bf16_ops_per_s", limits.bf16_ops_per_s},
          {"f32_ops_per_s", limits.f32_ops_per_s}};
}

Json row_json(const Circumstances& run, const Row& row, const ReportOptions& options) {
  const Figures f = figures_of(row);
  Json out = {{"build_commit", run.commit},
              {"build_number", 0},
              {"version", run.version},
              {"cpu_info", run.machine.cpu},
              {"gpu_info", ""},
              {"backends", "CPU"},
              {"isa", run.isa},
              {"model_filename", row.model.path},
              {"model_type", row.model.name},
              {"model_size", row.model.size_bytes},
              {"model_n_params", row.model.n_params},
              {"n_batch", row.one.n_batch},
              {"n_ubatch", row.one.n_ubatch},
              {"n_threads", row.one.n_threads},
              {"type_k", row.one.k_type},
              {"type_v", row.one.v_type},
              {"n_prompt", row.one.n_prompt},
              {"n_gen", row.one.n_gen},
              {"n_depth", row.one.n_depth},
              {"n_parallel", row.one.n_parallel},
              {"n_source", row.n_source},
              {"test", row.one.label()},
              {"test_time", run.test_time}};
  add_figures(out, row, f);
  add_machine(out, run, row);
  out["repetitions"] = row.timings.size();
  const std::vector<std::string> reasons = doubts(run, {row});
  out["trusted"] = reasons.empty();
  out["limits"] = row.limits.n_threads == 0 ? Json(nullptr) : limits_json(row.limits);
  out["doubts"] = reasons;
  Json ns = Json::array(), ts = Json::array(), steps = Json::array();
  for (const Timing& timing : row.timings) {
    ns.push_back(timing.total_ns);
    ts.push_back(timing.total_ns == 0 ? 0.0
                                      : static_cast<double>(row.one.tokens()) / static_cast<double>(timing.total_ns) * 1e9);
    steps.push_back(timing.step_ns);
  }
  out["samples_ns"] = ns;
  out["samples_ts"] = ts;
  if (options.step_times) out["step_ns"] = steps;
  return out;
}

std::string report_text(Format format, const Circumstances& run, const std::vector<Row>& rows,
                        const ReportOptions& options) {
  if (format == Format::md) return table_text(run, rows);
  Json list = Json::array();
  for (const Row& row : rows) list.push_back(row_json(run, row, options));
  if (format == Format::json) return list.dump(2) + "\n";
  if (format == Format::csv) return csv_text(list);
  if (format == Format::sql) return sql_text(list);
  std::string text;
  for (const Json& row : list) text += row.dump() + "\n";
  return text;
}

std::string verdict_line(const std::vector<std::string>& reasons) {
  if (reasons.empty()) return "verdict: nothing speaks against these figures";
  std::string text = "verdict: TOO NOISY TO TRUST: ";
  for (std::size_t i = 0; i < reasons.size(); ++i) text += (i == 0 ? "" : "; ") + reasons[i];
  return text;
}

}  // namespace quern::bench
