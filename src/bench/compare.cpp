#include "bench/compare.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "bench/limits_file.hpp"

namespace quern::bench {

namespace {

using base::Json;
using base::JsonObject;

constexpr std::size_t kMaxRows = 100000, kMaxSamples = 1000000;
constexpr std::size_t kMaxNumber = std::size_t{1} << 40;

std::vector<double> read_samples(JsonObject& object) {
  const Json& list = object.get("samples_ts");
  const std::string path = object.path_of("samples_ts");
  if (!list.is_array() || list.empty() || list.size() > kMaxSamples)
    base::reject(path, "not a list of speeds", list.is_array() ? base::cat(list.size(), " values") : list.type_name(),
                 "an array of numbers above 0");
  std::vector<double> samples;
  for (const Json& value : list) {
    const double speed = value.is_number() ? value.get<double>() : -1;
    if (!(speed > 0) || !std::isfinite(speed))
      base::reject(path, "not a speed", base::printable(value.dump(), 40), "a number above 0");
    samples.push_back(speed);
  }
  return samples;
}

BaseRow read_row(const Json& value, const std::string& path) {
  JsonObject object(value, path);
  BaseRow row;
  row.model = object.get_string("model_type");
  row.k_type = object.get_string("type_k");
  row.v_type = object.get_string("type_v");
  row.n_threads = object.get_size("n_threads", 0, kMaxNumber);
  row.n_ubatch = object.get_size("n_ubatch", 0, kMaxNumber);
  Case one;
  one.n_prompt = object.get_size("n_prompt", 0, kMaxNumber);
  one.n_gen = object.get_size("n_gen", 0, kMaxNumber);
  one.n_depth = object.get_size("n_depth", 0, kMaxNumber);
  if (object.has("n_parallel")) one.n_parallel = object.get_size("n_parallel", 0, kMaxNumber);
  row.test = one.label();
  row.samples_ts = read_samples(object);
  if (object.has("limits") && !object.is_null("limits")) row.limits = read_limits(object.get_object("limits"));
  return row;
}

bool meets(const Row& mine, const BaseRow& base) {
  return base.test == mine.one.label() && base.n_threads == mine.one.n_threads && base.n_ubatch == mine.one.n_ubatch &&
         base.k_type == mine.one.k_type && base.v_type == mine.one.v_type && base.model == mine.model.name;
}

double ratio(double mine, double base) {
  return mine > 0 && base > 0 ? mine / base : 1;
}

// Prompts are bound by arithmetic, answers by memory; a row with both by both.
double scale_of(const Row& mine, const BaseRow& base) {
  if (!base.limits || mine.limits.n_threads == 0) return 1;
  const bool integer = mine.work.prompt.integer;
  const double compute = integer ? ratio(mine.limits.int8_ops_per_s, base.limits->int8_ops_per_s)
                                 : ratio(mine.limits.f32_ops_per_s, base.limits->f32_ops_per_s);
  const double memory = ratio(mine.limits.read_bytes_per_s, base.limits->read_bytes_per_s);
  if (mine.one.n_gen == 0) return compute;
  return mine.one.n_prompt == 0 ? memory : std::sqrt(compute * memory);
}

std::string row_name(const Row& row) {
  return base::cat(row.one.label(), ", ", row.one.n_threads, row.one.n_threads == 1 ? " thread" : " threads", ", cache ",
                   row.one.k_type, "/", row.one.v_type);
}

const char* word_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::same: return "same";
    case Outcome::slower: return "SLOWER";
    case Outcome::faster: return "faster";
    case Outcome::undecided: break;
  }
  return "undecided";
}

}  // namespace

std::vector<BaseRow> parse_base(std::string_view text, std::string_view where) {
  std::vector<BaseRow> rows;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {  // jsonl
    std::size_t number = 0;
    for (std::size_t at = 0; at < text.size() && rows.size() < kMaxRows; ++number) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string place = base::cat(where, ":", number + 1);
      const std::string_view line = text.substr(at, end - at);
      if (line.find_first_not_of(" \t\r") != std::string_view::npos)
        rows.push_back(read_row(base::parse_json(line, place), place + ": row"));
      at = end + 1;
    }
    return rows;
  }
  const Json list = base::parse_json(text, where);
  if (!list.is_array() || list.size() > kMaxRows)
    base::reject(where, "not the rows of a benchmark", list.type_name(), "an array of objects, from quern bench -o json");
  for (std::size_t i = 0; i < list.size(); ++i) rows.push_back(read_row(list[i], base::cat(where, ": row ", i)));
  return rows;
}

bool Comparison::regressed() const {
  return std::any_of(rows.begin(), rows.end(), [](const ComparedRow& row) { return row.result.outcome == Outcome::slower; });
}

Comparison compare(const std::vector<Row>& rows, const std::vector<BaseRow>& base, double effect,
                   std::string_view where) {
  Comparison out;
  for (const Row& row : rows) {
    const auto found = std::find_if(base.begin(), base.end(), [&](const BaseRow& b) { return meets(row, b); });
    if (found == base.end()) {
      out.missing.push_back(row_name(row));
      continue;
    }
    const Figures f = figures_of(row);
    const Summary other = summarize(found->samples_ts);
    const double scale = scale_of(row, *found);
    out.rows.push_back({row_name(row), f.ts.median, other.median, scale,
                        found->limits.has_value() && row.limits.n_threads != 0, compare_runs(f.ts, other, scale, effect)});
  }
  if (out.rows.empty())
    base::reject(where, "no row of the base is one of this run",
                 base.empty() ? "no rows"
                              : base::cat(base::printable(base.front().model, 40), ", ", base.front().test, ", ",
                                          base.front().n_threads, " threads, cache ", base.front().k_type),
                 out.missing.empty() ? "rows" : base::cat(base::printable(rows.front().model.name, 40), ", ", out.missing.front()));
  return out;
}

std::string comparison_text(const Comparison& comparison) {
  std::ostringstream out;
  out << std::fixed;
  for (const ComparedRow& row : comparison.rows) {
    out << word_of(row.result.outcome) << ": " << row.name << ": " << std::setprecision(2) << row.mine << " t/s against "
        << row.base << std::setprecision(3);
    if (row.normalised) out << " x " << row.scale << " (limits)";
    out << ", ratio " << row.result.ratio << " [" << row.result.low << ", " << row.result.high << "]";
    out << (row.normalised ? "\n" : "; not normalised, a run has no limits\n");
  }
  for (const std::string& name : comparison.missing) out << "not in the base: " << name << "\n";
  return out.str();
}

}  // namespace quern::bench
