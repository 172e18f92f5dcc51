#include "quant/formats.hpp"

#include <algorithm>

namespace quern::quant {

namespace {

// Formats that are read a row at a time, embeddings above all, have a row of their own; others decode all sixteen.
template <class F>
void decode_row_of(const std::byte* super_block, std::size_t columns, std::size_t row, float* values) {
  if constexpr (requires { F::decode_row(super_block, columns, row, values); }) {
    F::decode_row(super_block, columns, row, values);
  } else {
    float block[kPanelRows * kSuperColumns];
    F::decode(super_block, columns, block, kSuperColumns);
    std::copy_n(block + row * kSuperColumns, columns, values);
  }
}

template <class F>
constexpr FormatTraits traits_of() {
  return {.id = F::kId,
          .name = F::kName,
          .column_step = F::kColumnStep,
          .activation_group = F::kActivationGroup,
          .integer = F::kInteger,
          .foreign = F::kForeign,
          .super_block_bytes = F::super_block_bytes,
          .encode = F::encode,
          .decode = F::decode,
          .decode_row = decode_row_of<F>};
}

template <class List>
struct Table;
template <class... F>
struct Table<FormatList<F...>> {
  static_assert(sizeof...(F) == kFormatCount);
  static constexpr FormatTraits kTraits[] = {traits_of<F>()...};
};
constexpr std::span<const FormatTraits> kAll = Table<Formats>::kTraits;

// Plain row-major float tables: no panels, no super-blocks; only its geometry and name are used.
constexpr FormatTraits kRowsF32 = {.id = FormatId::rows_f32,
                                   .name = "rows_f32",
                                   .column_step = 1,
                                   .activation_group = 0,
                                   .integer = false,
                                   .foreign = false,
                                   .super_block_bytes = nullptr,
                                   .encode = nullptr,
                                   .decode = nullptr,
                                   .decode_row = nullptr};

constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

}  // namespace

std::size_t format_index(FormatId id) {
  for (std::size_t i = 0; i < kAll.size(); ++i)
    if (kAll[i].id == id) return i;
  return kFormatCount;
}

std::span<const FormatTraits> all_formats() {
  return kAll;
}

const FormatTraits* find_format(FormatId id) {
  if (id == FormatId::rows_f32) return &kRowsF32;
  const std::size_t index = format_index(id);
  return index < kFormatCount ? &kAll[index] : nullptr;
}

const FormatTraits* find_format(std::string_view name) {
  for (const FormatTraits& format : kAll)
    if (equal_ignoring_case(name, format.name)) return &format;
  return nullptr;
}

}  // namespace quern::quant
