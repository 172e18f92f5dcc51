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

struct Component {
  const char* name;
  std::uint64_t parameters;
};

std::vector<Component> components(const Contract& contract) {
  const ParameterParts parts = parameter_parts(contract);
  return {{"embedding", parts.embedding}, {"positions", parts.positions},
          {"attention", parts.attention}, {"ffn", parts.ffn},
          {"norms", parts.norms},         {"head", parts.head}};
}

// What one decoded token reads: everything but the rows of the embedding and position tables it
// does not look up (a tied embedding is read whole, as the head).
std::uint64_t parameters_read_per_token(const Contract& contract) {
  const ParameterParts parts = parameter_parts(contract);
  std::uint64_t unread = 0;
  if (!contract.head.tied) unread += (contract.vocab_size - 1) * contract.embedding.d_embed;
  if (contract.embedding.positions)
    unread += (contract.embedding.positions->rows - 1) * contract.embedding.d_embed;
  return parts.total() - unread;
}

double share(std::uint64_t part, std::uint64_t total) {
  return static_cast<double>(part * 1000 / std::max<std::uint64_t>(total, 1)) / 10;
}

std::string parameters_text(const Contract& contract) {
  const std::uint64_t total = parameters_by_formula(contract);
  std::vector<ReportRow> rows;
  for (const Component& component : components(contract))
    rows.push_back({component.name, cat(grouped(component.parameters), "  (",
                                        number_text(share(component.parameters, total)), " %)")});
  rows.push_back({"total", grouped(total)});
  rows.push_back({"active", cat(grouped(total), " (every block runs for every token)")});
  rows.push_back({"read per token", grouped(parameters_read_per_token(contract))});
  return rows_text(rows);
}

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

Json parameters_json(const Contract& contract) {
  Json out = Json::object();
  for (const Component& component : components(contract))
    out[component.name] = component.parameters;
  out["total"] = out["active"] = parameters_by_formula(contract);
  out["read_per_token"] = parameters_read_per_token(contract);
  out["in_tensors"] = contract.counts.parameters_in_tensors;
  return out;
}

Json cache_json(const Contract& contract) {
  Json types = Json::array();
  for (const CacheCost& cost : cache_costs(contract))
    types.push_back({{"type", cost.type},
                     {"payload_bytes_per_token", cost.payload_bytes},
                     {"scale_bytes_per_token", cost.scale_bytes},
                     {"payload_bytes_per_1024_tokens", cost.payload_bytes_1024},
                     {"scale_bytes_per_1024_tokens", cost.scale_bytes_1024}});
  return {{"values_per_token", cache_values_per_token(contract)}, {"types", std::move(types)}};
}

}  // namespace

std::string describe_text(const Contract& contract, const std::vector<StoredTensor>& stored) {
  std::string out =
      cat(base::printable(contract.name), " (", base::printable(contract.family), ")\n");
  for (const ReportSection& section : report_points(contract))
    out += cat("\n", section.title, "\n", rows_text(section.rows));
  out += cat("\nEquations\n", rows_text(report_equations(contract)));
  out += cat("\nParameters\n", parameters_text(contract));
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
