// How numbers are stored: what every weight format must provide, and the geometry they share.
//
// A matrix [rows, columns] is stored as panels of 16 rows (the last one zero-padded); a panel is a
// row of super-blocks of 16 rows x 256 columns, the last one shorter. A super-block holds its
// codes, then its scales: each thread reads one sequential stream. Inside, "N16K4": a 64-byte line
// has 16 rows x 4 columns of 8-bit codes (row r at bytes 4r..4r+3); a 4-bit line has 16 rows x 8
// columns, low nibbles k..k+3, high nibbles k+4..k+7. f32 is N16K1, bf16 and f16 are N16K2.
// `rows_f32` is the exception: plain row-major float tables (norms, biases, position tables).
//
// Every integer format expands exactly to int8 (value = scale * code, or scale * code + minimum).
// One order of float sums per format, in every kernel: for each output, groups of
// `activation_group` columns in ascending order,  y = fma(float(sum of w_code * a_code), d_w * d_a,
// y), then for formats with a minimum y = fma(float(sum of a_code), m_w * d_a, y). Float formats:
// within 256 columns a chain of fma in column order starting at zero, super-blocks then added in
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace quern::quant {

// On-disk ids: never reused, never renumbered.
enum class FormatId : std::uint32_t {
  rows_f32 = 1,
  f32 = 2,
  bf16 = 3,
  f16 = 4,
  q8 = 16,    // native: int8 codes, f16 scale per 32 columns (holds GGUF Q8_0 exactly)
  q4 = 17,    // native: 4.3125 bits, table codes, f16 scale per 256 columns
  q4_0 = 32,  // keep formats: GGUF's own codes and scales
  q4_1 = 33,
  q5_0 = 34,
  q5_1 = 35,
  q4_k = 36,
  q5_k = 37,
  q6_k = 38,
  mxfp4 = 40,
  int4_g32 = 48,  // GPTQ, AWQ, compressed-tensors: scale and zero point per group of columns
  int4_g64 = 49,
  int4_g128 = 50,
  int4_f32 = 51,
  int8_g32 = 52,
  int8_g128 = 53,
  f8_e4m3 = 56,  // FP8 with scales per row and 128 columns
};

inline constexpr std::size_t kPanelRows = 16;
inline constexpr std::size_t kSuperColumns = 256;
inline constexpr std::size_t kGroupColumns = 32;
inline constexpr std::size_t kLineBytes = 64;

struct FormatTraits {
  FormatId id;
  std::string_view name;
  std::size_t column_step;       // columns are padded with zeros to a multiple of this (1, 2, 4 or 32)
  std::size_t activation_group;  // columns per activation scale; 0: activations stay float
  bool integer;                  // int8 dot products
  bool foreign;                  // a keep format
  // Bytes of a super-block of 16 rows x `columns` (a multiple of column_step, <= 256).
  std::size_t (*super_block_bytes)(std::size_t columns);
  // values [16, columns] row-major with `stride`, -> one super-block. Never fails; integer
  // formats turn NaN into 0 and saturate infinities (convert refuses both by default).
  // importance: per-column weights of the squared error, or nullptr.
  void (*encode)(const float* values, std::size_t stride, std::size_t columns,
                 const float* importance, std::byte* super_block);
  // One super-block -> values [16, columns] row-major with `stride`: the exact real value of each
  // weight (scale * code rounded once to float).
  void (*decode)(const std::byte* super_block, std::size_t columns, float* values,
                 std::size_t stride);
  // One row of it -> values [columns]: the same numbers.
  void (*decode_row)(const std::byte* super_block, std::size_t columns, std::size_t row, float* values);
};

// Geometry of a whole matrix in a format.
inline std::size_t padded_rows(std::size_t rows) {
  return (rows + kPanelRows - 1) / kPanelRows * kPanelRows;
}
inline std::size_t n_panels(std::size_t rows) {
  return (rows + kPanelRows - 1) / kPanelRows;
}
std::size_t padded_columns(const FormatTraits& format, std::size_t columns);
std::size_t panel_bytes(const FormatTraits& format, std::size_t columns);
// Whole tensor; rows_f32: rows * columns * 4. Errors on overflow are the caller's (use checked_*
// first).
std::uint64_t tensor_bytes(const FormatTraits& format, std::size_t rows, std::size_t columns);
double bits_per_weight(const FormatTraits& format, std::size_t rows, std::size_t columns);

// Panel [16, columns] row-major float -> panel bytes, and one row of a panel back to floats
// [columns].
void encode_panel(const FormatTraits& format, const float* values, std::size_t stride,
                  std::size_t columns, const float* importance, std::byte* panel);
void decode_row(const FormatTraits& format, const std::byte* panel, std::size_t row_in_panel,
                std::size_t columns, float* values);

}  // namespace quern::quant
