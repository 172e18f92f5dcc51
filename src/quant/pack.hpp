// Exact packing of foreign codes and scales into panels of the keep formats (q8 holds GGUF Q8_0).
// Not here: reading GGUF files (checkpoint/), choosing a format (convert/).
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/format.hpp"

namespace quern::quant {

// Bytes of a row of `columns` weights (a multiple of 32; of 256 for Q4_K, Q5_K, Q6_K) in GGUF blocks of
// the type that `format` keeps: Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K, MXFP4, and Q8_0 for q8. 0 for
// any other format.
std::size_t gguf_row_bytes(const FormatTraits& format, std::size_t columns);

// rows[r]: the GGUF blocks of row r of the panel, gguf_row_bytes() long, or nullptr for a row of
// padding (all values zero). Writes panel_bytes(format, columns) bytes. decode_row() then gives the
// values of the GGUF type bit for bit; no code and no scale is changed.
void pack_gguf_rows(const FormatTraits& format, const std::byte* const rows[kPanelRows],
                    std::size_t columns, std::byte* panel);

// One row of codes with scales and zero points per group of `group` columns, the last group shorter.
// codes: 0..15, the bits of an int8, of an 8-bit float, or an index into MXFP4's table, as the format has
// them; scales and zeros [ceil(columns / group)].
struct CodeRow {
  const std::uint8_t* codes = nullptr;  // nullptr: a row of padding
  const float* scales = nullptr;
  const std::int16_t* zeros = nullptr;
  std::size_t group = 0;
};

// Whether a format holds codes whose scales stand for `group` of `columns` columns: its own groups lie
// each in one of the source's.
bool holds_groups(const FormatTraits& format, std::size_t group, std::size_t columns);

// The same as pack_gguf_rows for the int4_*, int8_*, f8_e4m3 and mxfp4 formats. Scales must be f16 values
// in a format with f16 scales and powers of two in mxfp4; zero points 0..16 beside int4 codes, int8
// beside int8 codes, 0 elsewhere.
void pack_code_rows(const FormatTraits& format, const CodeRow rows[kPanelRows],
                    std::size_t columns, std::byte* panel);

}  // namespace quern::quant
