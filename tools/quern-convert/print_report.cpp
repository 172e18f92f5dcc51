#include "print_report.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/strings.hpp"

namespace quern::tool {

namespace {

using Row = std::vector<std::string>;

std::string fixed(double value, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// Columns padded to their widest cell; the first `left` columns are text, the others numbers.
void print_table(std::ostream& out, const std::vector<Row>& rows, std::size_t left) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string space(widths[c] - row[c].size(), ' ');
      if (c > 0) line += "  ";
      line += c < left ? row[c] + space : space + row[c];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

}  // namespace

void print_roles(std::ostream& out, const convert::ConvertReport& report, bool measured) {
  std::vector<Row> rows = {
      {"role", "format", "tensors", "parameters", "size", "bits", measured ? "rel. RMSE" : ""}};
  std::uint64_t parameters = 0, bytes = 0;
  std::size_t tensors = 0;
  for (const convert::RoleReport& line : report.roles) {
    rows.push_back({line.role, line.format, std::to_string(line.n_tensors),
                    base::grouped(line.parameters), base::human_bytes(line.bytes),
                    fixed(line.bits(), 3), measured ? fixed(line.relative_rmse(), 5) : ""});
    parameters += line.parameters;
    bytes += line.bytes;
    tensors += line.n_tensors;
  }
  rows.push_back({"all", "", std::to_string(tensors), base::grouped(parameters),
                  base::human_bytes(bytes), "", ""});
  print_table(out, rows, 2);
  out << "policy: " << report.policy << "\n"
      << "matrices: " << fixed(report.bits_per_weight, 3)
      << " bits per weight; file: " << base::human_bytes(report.file_bytes) << "\n";
}

void print_plan(std::ostream& out, const convert::ConvertReport& report) {
  std::vector<Row> rows = {{"tensor", "format", "note", "rows", "columns", "bytes"}};
  for (const convert::TensorPlan& tensor : report.tensors)
    rows.push_back({tensor.name, std::string(tensor.format->name),
                    tensor.note + (tensor.kept ? (tensor.note.empty() ? "kept" : ", kept") : ""),
                    std::to_string(tensor.rows), std::to_string(tensor.columns),
                    base::grouped(tensor.bytes)});
  print_table(out, rows, 3);
}

void print_supported_models(std::ostream& out) {
  const auto list = [&](const char* title, const std::vector<std::string>& names) {
    out << "  " << title;
    for (std::size_t i = 0; i < names.size(); ++i) out << (i == 0 ? "" : ", ") << names[i];
    out << "\n";
  };
  for (const convert::Recipe& recipe : convert::builtin_recipes()) {
    out << recipe.name << ": " << recipe.document["about"].get<std::string>() << "\n";
    list("Hugging Face: ", recipe.hf_names);
    list("GGUF: ", recipe.gguf_names);
  }
  out << "out of scope, refused by name (* stands for any text):\n";
  for (const convert::OutOfScope& family : convert::out_of_scope())
    list((family.why + ": ").c_str(), family.names);
}

}  // namespace quern::tool
