// The report of `quern plan` as tables.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "base/strings.hpp"
#include "model_options.hpp"
#include "plan_report.hpp"

namespace quern::tool {

using base::cat;
using base::grouped;

namespace {

std::string fixed(double value, int digits) {
  char text[64];
  const double step = std::pow(10.0, digits);
  std::snprintf(text, sizeof text, "%.*f", digits, std::round(value * step) / step);
  return text;
}

// Columns as wide as their widest cell; the first is left-aligned.
class Table {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_)
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (widths.size() <= i) widths.push_back(0);
        widths[i] = std::max(widths[i], row[i].size());
      }
    std::string out;
    for (const auto& row : rows_) {
      std::string line = " ";
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string pad(widths[i] - row[i].size(), ' ');
        line += " " + (i == 0 ? row[i] + pad : " " + pad + row[i]);
      }
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return out;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string types_text(const plan::CacheTypes& types) {
  const std::string k = cache_type_name(types.k), v = cache_type_name(types.v);
  return k == v ? k : k + "/" + v;
}

// 524288 -> "512 KiB", 11700 -> "11.43 KiB"
std::string per_token_text(const plan::CacheFormula& bytes) {
  const std::uint64_t total = bytes.total();
  if (total < 1024) return cat(total, " B");
  return cat(total % 1024 == 0 ? grouped(total / 1024) : fixed(static_cast<double>(total) / 1024, 2), " KiB");
}

std::string verdict(const plan::MemoryPlan& memory, const plan::MachineMemory& machine) {
  if (machine.usable() == 0) return "";
  if (memory.peak() <= machine.usable()) return "fits";
  return memory.anonymous() <= machine.usable() ? "fits if weights are paged" : "does not fit";
}

void print_memory(std::ostringstream& out, const PlanOptions& options, const PlanReport& report) {
  const std::string runs = options.run.beams > 1 ? cat(options.run.beams, " beams of ", options.run.new_tokens, " own tokens")
                                                 : cat(options.run.sequences, options.run.sequences > 1 ? " sequences" : " sequence");
  out << "\nMemory of a full context: " << runs << ", " << options.run.shape.n_threads << " threads\n";
  Table table;
  std::vector<std::string> head = {"context", "cache", "weights", "KV cache", "scratch"};
  if (!options.draft.empty()) head.push_back("draft");
  head.insert(head.end(), {"process", "peak RSS", ""});
  table.row(head);
  for (const PlannedRun& run : report.runs) {
    const plan::MemoryPlan& m = *run.memory;
    std::vector<std::string> row = {grouped(run.context), types_text(run.types), size_text(static_cast<double>(m.weights_resident)),
                                    size_text(static_cast<double>(m.need.cache_total())),
                                    size_text(static_cast<double>(m.need.scratch + m.need.encoder_touched))};
    if (!options.draft.empty()) row.push_back(size_text(static_cast<double>(m.draft)));
    row.insert(row.end(), {size_text(static_cast<double>(m.process)), size_text(static_cast<double>(m.peak())), verdict(m, report.machine)});
    table.row(row);
  }
  out << table.text();
}

void print_cache(std::ostringstream& out, const PlanReport& report) {
  if (report.cache.empty()) return;
  out << "\nCache by formula (bytes of a value x values, and scales)\n";
  Table table;
  std::vector<std::string> head = {"", "cache", "layers x KV heads x (K + V)", "a token"};
  for (const std::size_t context : report.contexts) head.push_back(cat(grouped(context), " tokens"));
  head.push_back("equals the weights at");
  table.row(head);
  for (const CacheRow& row : report.cache) {
    std::vector<std::string> cells = {row.shape.name, types_text(row.types), row.shape.heads, per_token_text(row.per_token)};
    for (const std::uint64_t bytes : row.bytes) cells.push_back(size_text(static_cast<double>(bytes)));
    cells.push_back(row.equal_at ? cat(grouped(*row.equal_at), " tokens") : "never");
    table.row(cells);
  }
  out << table.text();
}

std::string mega(double value) {
  return value >= 1e9 ? fixed(value / 1e9, 2) + " G" : fixed(value / 1e6, 2) + " M";
}

void print_phase(std::ostringstream& out, const char* title, const plan::PhaseWork& work, const plan::Limits& limits) {
  out << "\n" << title << "\n";
  Table table;
  std::vector<std::string> head = {"component", "operations", "weights B", "cache B", "ops/B"};
  if (limits.known()) head.insert(head.end(), {"time", "bound"});
  table.row(head);
  const auto add = [&](const plan::Work& part, double seconds, const std::string& bound) {
    std::vector<std::string> row = {part.component, mega(part.ops()), mega(part.weight_bytes), mega(part.cache_bytes),
                                    part.bytes() > 0 ? fixed(part.ops() / part.bytes(), 1) : "-"};
    if (limits.known()) row.insert(row.end(), {fixed(seconds * 1e6, 1) + " us", bound});
    table.row(row);
  };
  for (const plan::Work& part : work.parts) {
    const plan::BoundTime time = limits.known() ? plan::bound_time(part, limits) : plan::BoundTime{};
    add(part, time.seconds, time.bound == plan::Bound::compute ? "compute" : "bandwidth");
  }
  add(work.total(), limits.known() ? plan::total_seconds(work, limits) : 0, "");
  out << table.text();
}

void print_work(std::ostringstream& out, const PlanOptions& options, const PlanReport& report) {
  for (const PlannedRun& run : report.runs) {
    const std::string at = cat(grouped(run.context), " tokens, cache ", types_text(run.types));
    if (!run.encode.parts.empty()) print_phase(out, "A token of the source, encoded whole", run.encode, report.limits);
    print_phase(out, cat("A token of prefill, ", at, ", chunks of ", run.memory->need.step_tokens).c_str(), run.prefill, report.limits);
    const std::size_t step = std::max(options.run.sequences, options.run.beams);
    if (!run.decode.parts.empty())
      print_phase(out, cat("A token of decode at depth ", at, step > 1 ? cat(", ", step, " tokens a step") : "").c_str(), run.decode, report.limits);
    if (!report.limits.known()) continue;
    out << "  at most " << fixed(1 / plan::total_seconds(run.prefill, report.limits), 1) << " tokens/s of prefill";
    if (!run.decode.parts.empty())
      out << ", " << fixed(1 / plan::total_seconds(run.decode, report.limits), 1) << " tokens/s of decode";
    out << "\n";
  }
}

void print_fitting(std::ostringstream& out, const PlanOptions& options, const PlanReport& report) {
  for (const FittingRun& fitting : report.fitting) {
    out << "\nIn " << size_text(static_cast<double>(*options.budget)) << ", cache " << types_text(fitting.types) << ": ";
    if (fitting.context)
      out << "longest context " << grouped(*fitting.context) << " tokens"
          << (*fitting.context == report.max_positions ? " (all the model has)" : "") << " for " << options.run.sequences
          << (options.run.sequences > 1 ? " sequences" : " sequence");
    else
      out << "no context fits";
    if (fitting.sequences)
      out << "; most sequences of " << grouped(fitting.sequences_context) << " tokens: " << *fitting.sequences;
    else
      out << "; no sequence of " << grouped(fitting.sequences_context) << " tokens fits";
    out << "\n";
  }
}

}  // namespace

std::string size_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return fixed(bytes, unit == 0 ? 0 : 2) + " " + kUnits[unit];
}

std::string plan_text(const PlanOptions& options, const PlanReport& report) {
  std::ostringstream out;
  out << "model    " << base::printable(report.name, 80) << ": " << grouped(report.parameters) << " parameters, weights "
      << size_text(static_cast<double>(report.weight_bytes)) << " (" << report.type << ")\n";
  out << "machine  " << size_text(static_cast<double>(report.machine.available)) << " available";
  if (report.machine.cgroup_limit)
    out << "; cgroup limit " << size_text(static_cast<double>(*report.machine.cgroup_limit)) << ", "
        << size_text(static_cast<double>(report.machine.cgroup_used)) << " in use";
  else
    out << "; no cgroup limit";
  out << "\n";
  if (!report.runs.empty()) print_memory(out, options, report);
  print_cache(out, report);
  print_work(out, options, report);
  if (!report.runs.empty() && !report.limits.known())
    out << "\nTimes need --measure, or --gops N and --bandwidth GB/s.\n";
  if (!report.runs.empty() && report.limits.known())
    out << "\nBounds: " << fixed(report.limits.bandwidth / 1e9, 1) << " GB/s, int8 " << fixed(report.limits.int8_rate / 1e9, 1)
        << " GOP/s, float " << fixed(report.limits.float_rate / 1e9, 1) << " GFLOP/s"
        << (report.float_rate_taken ? " (taken as a quarter of int8)" : "") << "; activations stay in the caches.\n";
  print_fitting(out, options, report);
  return out.str();
}

}  // namespace quern::tool
