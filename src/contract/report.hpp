// Building blocks of describe.cpp. Internal to contract/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contract/contract.hpp"

namespace quern::contract {

struct ReportRow {
  std::string label;
  std::string value;  // may have several lines
};
struct ReportSection {
  std::string title;
  std::vector<ReportRow> rows;
};

// report_points.cpp: the eight points of the design, plus what concerns text.
std::vector<ReportSection> report_points(const Contract& contract);
// report_context.cpp: points 5 to 7.
ReportSection mask_point(const Contract& contract);
ReportSection positions_point(const Contract& contract);
ReportSection cache_point(const Contract& contract);

// report_equations.cpp: label = the layers ("layers 0-29"), value = the equation.
std::vector<ReportRow> report_equations(const Contract& contract);

// Cache types and what they cost, by formula: sum over the layers that own a cache of
// tokens held x n_kv_heads x (d_k + d_v) x value bytes, and the scales beside it.
struct CacheCost {
  std::string type;
  std::uint64_t payload_bytes = 0, scale_bytes = 0;            // of one token
  std::uint64_t payload_bytes_1024 = 0, scale_bytes_1024 = 0;  // of 1,024 tokens, windows applied
};
std::vector<CacheCost> cache_costs(const Contract& contract);

// One layer that owns a cache. A windowed one holds the last `kept` tokens (the widest of its
// readers decides), others hold all: kept is then the largest number.
struct CacheOwner {
  std::size_t layer;
  const Attention* op;
  std::size_t kept;
};
std::vector<CacheOwner> cache_owners(const Contract& contract);

// "1e-5", "0.125"
std::string number_text(double value);

// Lines "  label   value", labels padded to one width, further lines of a value under its first.
std::string rows_text(const std::vector<ReportRow>& rows);

// The layers that use one block, in order of first use.
struct LayerRun {
  std::string block_name;
  std::vector<std::size_t> layers;
};
std::vector<LayerRun> layers_by_block(const Contract& contract);
std::string layer_list(const std::vector<std::size_t>& layers);  // "layers 0-4, 6-10", "layer 3"

}  // namespace quern::contract
