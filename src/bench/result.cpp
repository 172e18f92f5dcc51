#include "bench/result.hpp"

#include <algorithm>

#include "engine/report.hpp"

namespace quern::bench {

namespace {

template <class F>
std::vector<double> each(const Row& row, F&& value) {
  std::vector<double> values;
  for (const Timing& timing : row.timings) values.push_back(value(timing));
  return values;
}

double per_second(double count, double ns) {
  return ns > 0 ? count / ns * 1e9 : 0;
}

double median(std::vector<double> values) {
  return summarize(std::move(values)).median;
}

std::optional<double> share(double value, double limit) {
  return limit > 0 ? std::optional<double>(value / limit) : std::nullopt;
}

// The cache is read once a step, at the mean length of the steps; it was measured at the end.
double cache_bytes_read(const Row& row, const Timing& timing) {
  const Case& one = row.one;
  const double held = static_cast<double>(one.n_depth + (row.n_source != 0 ? 0 : one.n_prompt) + one.n_gen);
  const auto n = static_cast<double>(one.n_gen);
  return held > 0 ? static_cast<double>(timing.cache_bytes) * n * (held - n / 2) / held : 0;
}

void add_parts(Figures& f, const Row& row) {
  const auto sequences = static_cast<double>(row.one.n_sequences());
  const double p = sequences * static_cast<double>(row.one.n_prompt), n = sequences * static_cast<double>(row.one.n_gen);
  if (row.one.n_prompt != 0) {
    f.ttft_ns = median(each(row, [](const Timing& t) { return static_cast<double>(t.prompt_ns); }));
    f.prompt_ts = summarize(each(row, [&](const Timing& t) { return per_second(p, static_cast<double>(t.prompt_ns)); }));
    f.ops_per_s = median(
        each(row, [&](const Timing& t) { return per_second(row.work.prompt.operations, static_cast<double>(t.prompt_ns)); }));
    f.integer = row.work.prompt.integer;
    f.ops_share = share(*f.ops_per_s, f.integer ? row.limits.int8_ops_per_s : row.limits.f32_ops_per_s);
  }
  if (row.one.n_gen == 0) return;
  f.gen_ts = summarize(each(row, [&](const Timing& t) { return per_second(n, static_cast<double>(t.gen_ns)); }));
  std::vector<double> steps;
  for (const Timing& timing : row.timings) steps.insert(steps.end(), timing.step_ns.begin(), timing.step_ns.end());
  f.token_p50_ns = engine::percentile(steps, 0.5);
  f.token_p95_ns = engine::percentile(steps, 0.95);
  f.token_p99_ns = engine::percentile(std::move(steps), 0.99);
  f.bytes_per_s = median(each(row, [&](const Timing& t) {
    return per_second(row.work.gen.weight_bytes + cache_bytes_read(row, t), static_cast<double>(t.gen_ns));
  }));
  f.bytes_share = share(*f.bytes_per_s, row.limits.read_bytes_per_s);
}

}  // namespace

Figures figures_of(const Row& row) {
  Figures f;
  const auto tokens = static_cast<double>(row.one.tokens());
  f.ns = summarize(each(row, [](const Timing& t) { return static_cast<double>(t.total_ns); }));
  f.ts = summarize(each(row, [&](const Timing& t) { return per_second(tokens, static_cast<double>(t.total_ns)); }));
  if (!row.timings.empty()) add_parts(f, row);
  return f;
}

}  // namespace quern::bench
