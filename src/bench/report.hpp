// Rows as text: the table for people, and the forms and keys that readers of llama-bench's output know, with quern's
// own keys behind them. Returns strings: printing is the tools' business.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"
#include "bench/result.hpp"

namespace quern::bench {

enum class Format { md, csv, json, jsonl, sql };
Format parse_format(std::string_view option, const std::string& word);  // usage error otherwise

struct ReportOptions {
  bool step_times = false;  // every decode step's time in JSON
};

std::string report_text(Format format, const Circumstances& run, const std::vector<Row>& rows,
                        const ReportOptions& options);

// One row as JSON, scalars first; what csv and sql print too.
base::Json row_json(const Circumstances& run, const Row& row, const ReportOptions& options);

base::Json limits_json(const Limits& limits);
std::string limits_text(const Limits& limits);
// "trust: ..." or "DOUBT: a; b", one line.
std::string verdict_line(const std::vector<std::string>& doubts);

// The table's own file (report_table.cpp).
std::string table_text(const Circumstances& run, const std::vector<Row>& rows);

}  // namespace quern::bench
