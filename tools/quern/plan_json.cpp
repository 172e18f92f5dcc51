// The report of `quern plan` as one JSON object: bytes, operations, seconds.
#include <nlohmann/json.hpp>

#include "model_options.hpp"
#include "plan_report.hpp"

namespace quern::tool {

namespace {

using Json = nlohmann::ordered_json;

Json optional_number(const std::optional<std::uint64_t>& value) { return value ? Json(*value) : Json(nullptr); }

Json memory_json(const plan::MemoryPlan& m) {
  return {{"weights_file", m.weights_file},
          {"weights_resident", m.weights_resident},
          {"cache_payload", m.need.cache.payload + m.need.source.payload},
          {"cache_scales", m.need.cache.scales + m.need.source.scales},
          {"cache_touched", m.need.cache_total()},
          {"encoder", m.need.encoder_touched},
          {"scratch", m.need.scratch},
          {"draft", m.draft},
          {"process", m.process},
          {"peak_rss", m.peak()}};
}

Json phase_json(const plan::PhaseWork& work, const plan::Limits& limits) {
  Json parts = Json::array();
  std::vector<plan::Work> all = work.parts;
  all.push_back(work.total());
  for (const plan::Work& part : all) {
    Json row = {{"component", part.component},
                {"int8_ops", part.int8_ops},
                {"float_ops", part.float_ops},
                {"weight_bytes", part.weight_bytes},
                {"cache_bytes", part.cache_bytes}};
    if (limits.known() && part.component != "total") {
      const plan::BoundTime time = plan::bound_time(part, limits);
      row["seconds"] = time.seconds;
      row["bound"] = time.bound == plan::Bound::compute ? "compute" : "bandwidth";
    }
    parts.push_back(std::move(row));
  }
  Json phase = {{"components", std::move(parts)}};
  if (limits.known()) phase["tokens_per_second_at_most"] = 1 / plan::total_seconds(work, limits);
  return phase;
}

Json types_json(const plan::CacheTypes& types) {
  return {{"type_k", cache_type_name(types.k)}, {"type_v", cache_type_name(types.v)}};
}

Json cache_json(const PlanReport& report) {
  Json rows = Json::array();
  for (const CacheRow& row : report.cache) {
    Json entry = types_json(row.types);
    entry["heads"] = row.shape.name;
    entry["layers"] = row.shape.heads;
    entry["payload_bytes_per_token"] = row.per_token.payload;
    entry["scale_bytes_per_token"] = row.per_token.scales;
    entry["contexts"] = report.contexts;
    entry["bytes"] = row.bytes;
    entry["tokens_equal_to_weights"] = optional_number(row.equal_at);
    rows.push_back(std::move(entry));
  }
  return rows;
}

Json runs_json(const PlanOptions& options, const PlanReport& report) {
  Json rows = Json::array();
  for (const PlannedRun& run : report.runs) {
    Json entry = {{"context", run.context}};
    entry.update(types_json(run.types));
    entry.update(Json{{"sequences", options.run.sequences},
                      {"beams", options.run.beams},
                      {"n_threads", options.run.shape.n_threads},
                      {"step_tokens", run.memory->need.step_tokens}});
    entry["memory"] = memory_json(*run.memory);
    entry["fits"] = report.machine.usable() == 0 || run.memory->peak() <= report.machine.usable();
    if (!run.encode.parts.empty()) entry["encode"] = phase_json(run.encode, report.limits);
    entry["prefill"] = phase_json(run.prefill, report.limits);
    if (!run.decode.parts.empty()) entry["decode"] = phase_json(run.decode, report.limits);
    rows.push_back(std::move(entry));
  }
  return rows;
}

}  // namespace

std::string plan_json(const PlanOptions& options, const PlanReport& report) {
  Json document = {{"model", report.name},
                   {"path", report.where},
                   {"type", report.type},
                   {"parameters", report.parameters},
                   {"weight_bytes", report.weight_bytes},
                   {"max_positions", report.max_positions}};
  document["machine"] = {{"available", report.machine.available},
                         {"cgroup_limit", optional_number(report.machine.cgroup_limit)},
                         {"cgroup_used", report.machine.cgroup_used},
                         {"usable", report.machine.usable()}};
  if (report.limits.known())
    document["limits"] = {{"bytes_per_s", report.limits.bandwidth},
                          {"int8_ops_per_s", report.limits.int8_rate},
                          {"float_ops_per_s", report.limits.float_rate}};
  document["runs"] = runs_json(options, report);
  document["cache"] = cache_json(report);
  Json fitting = Json::array();
  for (const FittingRun& one : report.fitting) {
    Json row = types_json(one.types);
    row["budget"] = *options.budget;
    row["longest_context"] = one.context ? Json(*one.context) : Json(nullptr);
    row["sequences_context"] = one.sequences_context;
    row["most_sequences"] = one.sequences ? Json(*one.sequences) : Json(nullptr);
    fitting.push_back(std::move(row));
  }
  if (options.budget) document["fitting"] = std::move(fitting);
  return document.dump(2) + "\n";
}

}  // namespace quern::tool
