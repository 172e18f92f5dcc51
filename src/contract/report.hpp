// Building blocks of describe.cpp. Internal to contract/.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
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
// report_attention.cpp: point 4. report_context.cpp: 5 and 6. report_cache.cpp: 7.
ReportSection attention_point(const Contract& contract);
ReportSection mask_point(const Contract& contract);
ReportSection positions_point(const Contract& contract);
ReportSection cache_point(const Contract& contract);

// report_equations.cpp: label = the layers ("layers 0-29"), value = the equation.
std::vector<ReportRow> report_equations(const Contract& contract);
// report_op_equations.cpp. norm: the name in Contract::norms as the equations write it.
class EquationNames;
std::string op_equation(const EquationNames& names, const Op& op);

// report_cache.cpp: what one layer keeps of its input. Rows stand for row_block tokens, one begins
// every row_stride tokens (1 and 1 but for compressed blocks).
struct CachePart {
  std::size_t layer;
  const Op* op;
  std::string_view what;         // for people: "K and V"
  std::string formula;           // of the values in a row: "8 x (128 + 128)"
  std::uint64_t values, scales;  // of a row
  std::size_t kept;              // rows held at most; the largest number without a window
  std::size_t row_block = 1, row_stride = 1;
  bool exact = false;                                // f32 whatever the type of the cache
  std::uint64_t groups = 0;  // of 32 values in a row, each with an f16 scale in int4; 0: no int4 form
  std::uint64_t rows(std::uint64_t n_tokens) const;  // held for a sequence of n_tokens
};
std::vector<CachePart> cache_parts(const Contract& contract);  // of the decoder's own positions
std::vector<CachePart> cross_parts(
    const Contract& contract);  // rows are tokens of the encoder's input

// Cache types and what they cost, by formula: sum over the parts of rows held x values x bytes of a
// value, and the scales beside it.
struct CacheCost {
  std::string type;
  std::uint64_t payload_bytes = 0, scale_bytes = 0;  // of one token, compressed rows apart
  std::uint64_t payload_bytes_1024 = 0, scale_bytes_1024 = 0;  // of 1,024 tokens, windows applied
  std::uint64_t payload_bytes_full = 0, scale_bytes_full = 0;  // of max_positions tokens
};
std::vector<CacheCost> cache_costs(const Contract& contract);

// report_parameters.cpp
std::vector<ReportRow> parameter_rows(const Contract& contract);
std::uint64_t parameters_read_per_token(const Contract& contract);

// "1e-5", "0.125"
std::string number_text(double value);
// part / total as "33.2 %"
std::string percent_text(std::uint64_t part, std::uint64_t total);
// "q k v" of the words that hold, "none"
std::string word_list(std::initializer_list<std::pair<const char*, bool>> words);
// "attention "main"" : the label of an entry of the contract
std::string entry_label(std::string_view kind, std::string_view name);

// Lines "  label   value", labels padded to one width, further lines of a value under its first.
std::string rows_text(const std::vector<ReportRow>& rows);

// A stack and its name in the report: "", or "encoder ", "decoder " where there are two.
struct NamedStack {
  std::string prefix;
  const Stack* stack;
};
std::vector<NamedStack> stacks_of(const Contract& contract);
const Stack& output_stack(const Contract& contract);  // whose last stream the head reads

// The layers that use one block, in order of first use.
struct LayerRun {
  std::string block_name;
  std::vector<std::size_t> layers;
};
std::vector<LayerRun> layers_by_block(const Contract& contract, const Stack& stack);
std::string layer_list(const std::vector<std::size_t>& layers);  // "layers 0-4, 6-10", "layer 3"

}  // namespace quern::contract
