// Exact packing of foreign codes and scales into panels of the keep formats (q8 holds GGUF Q8_0).
// Not here: reading GGUF files (checkpoint/), choosing a format (convert/).
#pragma once

#include <cstddef>

#include "quant/format.hpp"

namespace quern::quant {

// Bytes of a row of `columns` weights (a multiple of 32) in GGUF blocks of the type that `format`
// keeps: Q4_0, Q4_1, Q5_0, Q5_1, and Q8_0 for q8. 0 for any other format.
std::size_t gguf_row_bytes(const FormatTraits& format, std::size_t columns);

// rows[r]: the GGUF blocks of row r of the panel, gguf_row_bytes() long, or nullptr for a row of
// padding (all values zero). Writes panel_bytes(format, columns) bytes. decode_row() then gives the
// values of the GGUF type bit for bit; no code and no scale is changed.
void pack_gguf_rows(const FormatTraits& format, const std::byte* const rows[kPanelRows],
                    std::size_t columns, std::byte* panel);

}  // namespace quern::quant
