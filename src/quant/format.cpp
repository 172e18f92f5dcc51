#include "quant/format.hpp"

#include <algorithm>

namespace quern::quant {

std::size_t padded_columns(const FormatTraits& format, std::size_t columns) {
  return (columns + format.column_step - 1) / format.column_step * format.column_step;
}

std::size_t panel_bytes(const FormatTraits& format, std::size_t columns) {
  const std::size_t padded = padded_columns(format, columns);
  const std::size_t tail = padded % kSuperColumns;
  std::size_t bytes = padded / kSuperColumns * format.super_block_bytes(kSuperColumns);
  if (tail != 0) bytes += format.super_block_bytes(tail);
  return bytes;
}

std::uint64_t tensor_bytes(const FormatTraits& format, std::size_t rows, std::size_t columns) {
  if (format.id == FormatId::rows_f32) return std::uint64_t{rows} * columns * sizeof(float);
  return std::uint64_t{n_panels(rows)} * panel_bytes(format, columns);
}

double bits_per_weight(const FormatTraits& format, std::size_t rows, std::size_t columns) {
  if (rows == 0 || columns == 0) return 0;
  return 8.0 * static_cast<double>(tensor_bytes(format, rows, columns)) /
         (static_cast<double>(rows) * static_cast<double>(columns));
}

namespace {

// The last super-block of a matrix whose columns are not a multiple of the column step: zeros
// beside the values, and no importance for them, so that they do not pull the fit.
void encode_padded(const FormatTraits& format, const float* values, std::size_t stride,
                   std::size_t columns, const float* importance, std::byte* super_block) {
  float padded[kPanelRows * kSuperColumns] = {};
  float weights[kSuperColumns] = {};
  for (std::size_t row = 0; row < kPanelRows; ++row)
    std::copy_n(values + row * stride, columns, padded + row * kSuperColumns);
  for (std::size_t k = 0; k < columns; ++k) weights[k] = importance == nullptr ? 1 : importance[k];
  format.encode(padded, kSuperColumns, padded_columns(format, columns), weights, super_block);
}

}  // namespace

void encode_panel(const FormatTraits& format, const float* values, std::size_t stride,
                  std::size_t columns, const float* importance, std::byte* panel) {
  for (std::size_t begin = 0; begin < columns; begin += kSuperColumns) {
    const std::size_t width = std::min(kSuperColumns, columns - begin);
    const float* weights = importance == nullptr ? nullptr : importance + begin;
    if (width % format.column_step == 0)
      format.encode(values + begin, stride, width, weights, panel);
    else
      encode_padded(format, values + begin, stride, width, weights, panel);
    panel += format.super_block_bytes(padded_columns(format, width));
  }
}

void decode_row(const FormatTraits& format, const std::byte* panel, std::size_t row_in_panel,
                std::size_t columns, float* values) {
  float row[kSuperColumns];  // with the padding
  for (std::size_t begin = 0; begin < columns; begin += kSuperColumns) {
    const std::size_t width = std::min(kSuperColumns, columns - begin);
    const std::size_t padded = padded_columns(format, width);
    format.decode_row(panel, padded, row_in_panel, row);
    std::copy_n(row, width, values + begin);
    panel += format.super_block_bytes(padded);
  }
}

}  // namespace quern::quant
