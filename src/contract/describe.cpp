#include "contract/describe.hpp"

#include <algorithm>
#include <map>

#include "base/strings.hpp"
#include "contract/json_printer.hpp"
#include "contract/parameters.hpp"
#include "contract/report.hpp"
#include "contract/tensors.hpp"

namespace quern::contract {

using base::cat;
using base::grouped;
using base::Json;

std::string rows_text(const std::vector<ReportRow>& rows) {
  std::size_t width = 0;
  for (const ReportRow& row : rows) width = std::max(width, row.label.size());
  std::string out;
  for (const ReportRow& row : rows) {
    out += cat("  ", row.label, std::string(width - row.label.size() + 2, ' '));
    for (const char c : row.value)
      out += c == '\n' ? "\n" + std::string(width + 4, ' ') : std::string(1, c);
    out += '\n';
  }
  return out;
}

namespace {

// Stored tensors summed by role and format, in the order of the file.
struct FormatLine {
  std::string role, format;
  std::uint64_t tensors = 0, parameters = 0, bytes = 0;
  double bits() const {
    return 8.0 * static_cast<double>(bytes) /
           static_cast<double>(std::max<std::uint64_t>(parameters, 1));
  }
};

std::vector<FormatLine> format_lines(const Contract& contract,
                                     const std::vector<StoredTensor>& stored) {
  std::map<std::string_view, const StoredTensor*> by_name;
  for (const StoredTensor& tensor : stored) by_name[tensor.name] = &tensor;
  std::vector<FormatLine> lines;
  if (stored.empty()) return lines;
  for (const TensorSpec& spec : expected_tensors(contract)) {
    const auto found = by_name.find(spec.name);
    const std::string format = found == by_name.end() ? "missing" : found->second->format;
    const std::string role(role_name(spec.role));
    auto line = std::find_if(lines.begin(), lines.end(), [&](const FormatLine& l) {
      return l.role == role && l.format == format;
    });
    if (line == lines.end()) line = lines.insert(lines.end(), FormatLine{role, format});
    ++line->tensors;
    line->parameters += spec.parameters();
    line->bytes += found == by_name.end() ? 0 : found->second->bytes;
  }
  return lines;
}

double rounded(double value) {
  return static_cast<double>(static_cast<std::int64_t>(value * 100 + 0.5)) / 100;
}

std::string formats_text(const std::vector<FormatLine>& lines) {
  std::vector<ReportRow> rows;
  FormatLine total;
  for (const FormatLine& line : lines) {
    rows.push_back({line.role, cat(line.format, ", ", line.tensors, " tensors, ",
                                   base::human_bytes(line.bytes), ", ",
                                   number_text(rounded(line.bits())), " bits a weight")});
    total.parameters += line.parameters;
    total.bytes += line.bytes;
  }
  rows.push_back({"all", cat(base::human_bytes(total.bytes), ", ",
                             number_text(rounded(total.bits())), " bits a weight")});
  return rows_text(rows);
}

Json rows_json(const std::vector<ReportRow>& rows) {
  Json out = Json::array();
  for (const ReportRow& row : rows) out.push_back({{"label", row.label}, {"value", row.value}});
  return out;
}

// Of one layer that uses the block.
Json layer_json(const std::string& name, const ParameterParts& parts) {
  return {{"block", name},        {"attention", parts.attention}, {"ffn", parts.ffn},
          {"norms", parts.norms}, {"total", parts.total()},       {"active", parts.active()}};
}

Json parameters_json(const Contract& contract) {
  const ParameterParts parts = parameter_parts(contract);
  Json layers = Json::array();
  for (const auto& [name, block] : contract.blocks)
    layers.push_back(layer_json(name, block_parts(contract, block)));
  return {{"embedding", parts.embedding},
          {"positions", parts.positions},
          {"attention", parts.attention},
          {"ffn", parts.ffn},
          {"norms", parts.norms},
          {"head", parts.head},
          {"total", parts.total()},
          {"active", parts.active()},
          {"read_per_token", parameters_read_per_token(contract)},
          {"in_tensors", contract.counts.parameters_in_tensors},
          {"layers", std::move(layers)}};
}

Json cache_json(const Contract& contract) {
  Json types = Json::array();
  for (const CacheCost& cost : cache_costs(contract))
    types.push_back({{"type", cost.type},
                     {"payload_bytes_per_token", cost.payload_bytes},
                     {"scale_bytes_per_token", cost.scale_bytes},
                     {"payload_bytes_per_1024_tokens", cost.payload_bytes_1024},
                     {"scale_bytes_per_1024_tokens", cost.scale_bytes_1024},
                     {"payload_bytes_of_max_positions", cost.payload_bytes_full},
                     {"scale_bytes_of_max_positions", cost.scale_bytes_full}});
  return {{"values_per_token", cache_values_per_token(contract)},
          {"values_per_encoder_token", cache_values_per_encoder_token(contract)},
          {"types", std::move(types)}};
}

}  // namespace

std::string describe_text(const Contract& contract, const std::vector<StoredTensor>& stored) {
  std::string out =
      cat(base::printable(contract.name), " (", base::printable(contract.family), ")\n");
  for (const ReportSection& section : report_points(contract))
    out += cat("\n", section.title, "\n", rows_text(section.rows));
  out += cat("\nEquations\n", rows_text(report_equations(contract)));
  out += cat("\nParameters\n", rows_text(parameter_rows(contract)));
  if (!stored.empty())
    out += cat("\nWeight formats\n", formats_text(format_lines(contract, stored)));
  return out;
}

std::string describe_json(const Contract& contract, const std::vector<StoredTensor>& stored) {
  Json points = Json::array();
  for (const ReportSection& section : report_points(contract))
    points.push_back({{"title", section.title}, {"rows", rows_json(section.rows)}});
  Json formats = Json::array();
  for (const FormatLine& line : format_lines(contract, stored))
    formats.push_back({{"role", line.role},
                       {"format", line.format},
                       {"tensors", line.tensors},
                       {"parameters", line.parameters},
                       {"bytes", line.bytes}});
  const Json out = {{"name", contract.name},
                    {"family", contract.family},
                    {"points", std::move(points)},
                    {"equations", rows_json(report_equations(contract))},
                    {"parameters", parameters_json(contract)},
                    {"cache", cache_json(contract)},
                    {"formats", std::move(formats)}};
  return print_json(out);
}

}  // namespace quern::contract
