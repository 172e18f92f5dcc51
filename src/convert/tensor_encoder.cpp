#include "convert/tensor_encoder.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <vector>

#include "base/buffer.hpp"
#include "base/small_float.hpp"
#include "base/strings.hpp"
#include "checkpoint/packed_tensor.hpp"
#include "quant/formats.hpp"
#include "quant/pack.hpp"

namespace quern::convert {

namespace {

using base::cat;
using quant::FormatId;
using quant::kPanelRows;
using quant::kSuperColumns;

constexpr std::size_t kBatchBytes = std::size_t{8} << 20;  // encoded panels between two writes
constexpr std::size_t kTableValues = std::size_t{1}
                                     << 16;  // values of a part of a plain float table

// How a tensor is cut into parts that are read and encoded on their own.
struct Cut {
  std::size_t part_rows, buffer_rows, part_bytes, n_parts;
};

Cut cut_of(const PlannedTensor& tensor) {
  const std::size_t rows = tensor.view.rows(), columns = tensor.view.columns();
  if (tensor.format->id != FormatId::rows_f32)
    return {kPanelRows, kPanelRows, quant::panel_bytes(*tensor.format, columns),
            quant::n_panels(rows)};
  const std::size_t part_rows = std::clamp<std::size_t>(kTableValues / columns, 1, rows);
  return {part_rows, part_rows, part_rows * columns * sizeof(float),
          (rows + part_rows - 1) / part_rows};
}

// What was found in one part; parts are summed in order.
struct Part {
  TensorError error;
  std::uint64_t n_nonfinite = 0, first_nonfinite = 0;  // index of the value in the view
  std::uint64_t n_overflow = 0, first_overflow = 0;
  float overflow_value = 0;
  std::exception_ptr failure;

  void overflow(std::uint64_t index, float value) {
    if (n_overflow++ != 0) return;
    first_overflow = index;
    overflow_value = value;
  }
  void add(const Part& next) {
    if (n_nonfinite == 0) first_nonfinite = next.first_nonfinite;
    if (n_overflow == 0) {
      first_overflow = next.first_overflow;
      overflow_value = next.overflow_value;
    }
    n_nonfinite += next.n_nonfinite;
    n_overflow += next.n_overflow;
    error.squared_error += next.error.squared_error;
    error.squared_sum += next.error.squared_sum;
  }
};

// values [rows, columns] with `stride`: how many are not finite, and the first.
void count_nonfinite(const float* values, std::size_t rows, std::size_t columns,
                     std::size_t first_row, Part& part) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      if (std::isfinite(values[r * columns + c])) continue;
      if (part.n_nonfinite++ == 0)
        part.first_nonfinite = std::uint64_t{first_row + r} * columns + c;
    }
}

// Encoders saturate. A value is lost when it came back as no number, when an f16 target cannot hold
// it, or when it is the largest of its panel and came back a quarter smaller (a scale that did not
// fit). Only values beyond what the smallest code of the largest f16 scale holds can do that: tiny ones
// that fall below the smallest scale round to zero, as they should.
constexpr float kSaturated = 0.75F;
constexpr float kLargestScale = 65504;
bool too_large(FormatId format, float value, float stored, float largest) {
  if (!std::isfinite(stored)) return true;
  if (format == FormatId::f16) return std::isinf(base::f16_to_float(base::float_to_f16(value)));
  return largest > kLargestScale && std::fabs(value) == largest &&
         std::fabs(stored) < kSaturated * largest;
}

float largest_of(const float* values, std::size_t n) {
  float largest = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (std::isfinite(values[i])) largest = std::max(largest, std::fabs(values[i]));
  return largest;
}

// Decodes the panel again: error sums, and the values that were too large.
void compare(const PlannedTensor& tensor, const float* values, std::size_t rows,
             std::size_t first_row, const std::byte* panel, Part& part) {
  const quant::FormatTraits& format = *tensor.format;
  const std::size_t columns = tensor.view.columns();
  const float largest = largest_of(values, rows * columns);
  float block[kPanelRows * kSuperColumns];
  for (std::size_t begin = 0; begin < columns; begin += kSuperColumns) {
    const std::size_t width = std::min(kSuperColumns, columns - begin);
    const std::size_t padded = quant::padded_columns(format, width);
    format.decode(panel, padded, block, kSuperColumns);
    panel += format.super_block_bytes(padded);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < width; ++c) {
        const float value = values[r * columns + begin + c], stored = block[r * kSuperColumns + c];
        if (!std::isfinite(value)) continue;
        if (too_large(format.id, value, stored, largest))
          part.overflow(std::uint64_t{first_row + r} * columns + begin + c, value);
        if (!std::isfinite(stored)) continue;
        const double difference = double{value} - double{stored};
        part.error.squared_error += difference * difference;
        part.error.squared_sum += double{value} * double{value};
      }
  }
}

std::string index_text(std::uint64_t flat, const RowView& view) {
  if (view.columns() == 1) return cat("[", flat, "]");
  return cat("[", flat / view.columns(), ", ", flat % view.columns(), "]");
}

// Rows [first, first + count) of the source's own codes and scales -> a panel.
void pack_rows(const PlannedTensor& tensor, std::size_t first, std::size_t count, std::byte* out) {
  const std::size_t columns = tensor.view.columns();
  const checkpoint::PackedTensor* packed = tensor.view.source().packed();
  if (packed == nullptr) {
    const std::byte* blocks[kPanelRows] = {};
    for (std::size_t r = 0; r < count; ++r) blocks[r] = tensor.view.row_bytes(first + r).data();
    return quant::pack_gguf_rows(*tensor.format, blocks, columns, out);
  }
  checkpoint::PackedRow rows[kPanelRows];
  quant::CodeRow codes[kPanelRows];
  for (std::size_t r = 0; r < count; ++r) {
    packed->row(tensor.view.stored_row(first + r), rows[r]);
    codes[r] = {rows[r].codes.data(), rows[r].scales.data(), rows[r].zeros.data(),
                static_cast<std::size_t>(packed->shape().group)};
  }
  quant::pack_code_rows(*tensor.format, codes, columns, out);
}

// Part `index`: reads its rows into `values`, counts, encodes into `out`.
void encode_part(const PlannedTensor& tensor, std::size_t index, bool allow_nonfinite,
                 float* values, std::byte* out, Part& part) {
  const Cut cut = cut_of(tensor);
  const std::size_t columns = tensor.view.columns();
  const std::size_t first = index * cut.part_rows;
  const std::size_t rows = std::min(cut.part_rows, tensor.view.rows() - first);
  tensor.view.read(first, rows, values, columns);
  count_nonfinite(values, rows, columns, first, part);
  if (tensor.format->id == FormatId::rows_f32) {
    std::memcpy(out, values, rows * columns * sizeof(float));
    return;
  }
  // Integer encoders take finite values only; the tensor is refused once all its values are
  // counted.
  const bool floats = !tensor.format->integer && !tensor.kept;
  if (part.n_nonfinite != 0 && (!floats || !allow_nonfinite)) return;
  std::fill(values + rows * columns, values + kPanelRows * columns, 0.0F);
  if (tensor.kept) {
    pack_rows(tensor, first, rows, out);
  } else {
    quant::encode_panel(*tensor.format, values, columns, columns, nullptr, out);
  }
  compare(tensor, values, rows, first, out, part);
}

void check(const PlannedTensor& tensor, const Part& total, bool allow_nonfinite,
           std::string_view where, std::string& notice) {
  const std::string place = cat(where, ": tensor ", base::printable(tensor.view.source().name));
  if (total.n_nonfinite != 0) {
    const std::string what =
        cat(total.n_nonfinite, " values of ", tensor.spec.name, " are not finite, the first at ",
            index_text(total.first_nonfinite, tensor.view));
    if (!allow_nonfinite)
      base::reject(place, cat(what, "; --allow-nonfinite stores them in a float type"));
    if (tensor.format->integer || tensor.kept)
      base::reject(place, cat(what, "; only a float type can hold them"), tensor.format->name,
                   "f32, bf16 or f16");
    notice = cat(place, ": ", what);
  }
  if (total.n_overflow != 0)
    base::reject(place,
                 cat("the value ", total.overflow_value, " at ",
                     index_text(total.first_overflow, tensor.view), " of ", tensor.spec.name,
                     " is too large for ", tensor.format->name, " (", total.n_overflow,
                     " such values); --tensor-type '", tensor.spec.name, "=bf16' stores it wider"));
  if (tensor.kept && total.error.squared_error != 0)
    throw base::Error(base::ExitCode::internal, place,
                      "kept blocks do not decode to the source's values");
}

}  // namespace

TensorEncoder::TensorEncoder(base::ThreadPool& pool, weights::WeightWriter& writer,
                             bool allow_nonfinite, std::function<void(std::uint64_t)> advance)
    : pool_(pool),
      writer_(writer),
      allow_nonfinite_(allow_nonfinite),
      advance_(std::move(advance)) {}

TensorError TensorEncoder::write(const PlannedTensor& tensor, std::string_view where,
                                 std::string& notice) {
  const Cut cut = cut_of(tensor);
  const std::size_t buffer_values = cut.buffer_rows * tensor.view.columns(),
                    n_threads = pool_.n_threads();
  base::Buffer<float> values(buffer_values * n_threads);
  const std::size_t batch =
      std::clamp(kBatchBytes / cut.part_bytes, n_threads, std::max(cut.n_parts, n_threads));
  base::Buffer<std::byte> encoded(batch * cut.part_bytes);
  Part total;
  writer_.begin_tensor(tensor.spec.name, *tensor.format, tensor.spec.rows, tensor.spec.columns);
  std::uint64_t written = 0;
  for (std::size_t begin = 0; begin < cut.n_parts; begin += batch) {
    const std::size_t n = std::min(batch, cut.n_parts - begin);
    std::vector<Part> parts(n);
    auto work = [&](std::size_t from, std::size_t to, std::size_t thread) {
      for (std::size_t i = from; i < to; ++i) try {
          encode_part(tensor, begin + i, allow_nonfinite_, values.data() + thread * buffer_values,
                      encoded.data() + i * cut.part_bytes, parts[i]);
        } catch (...) {
          parts[i].failure = std::current_exception();
        }
    };
    pool_.parallel_for(n, 1, work);
    for (const Part& part : parts) {
      if (part.failure) std::rethrow_exception(part.failure);
      total.add(part);
    }
    const std::uint64_t bytes =
        std::min<std::uint64_t>(std::uint64_t{n} * cut.part_bytes, tensor.bytes - written);
    writer_.append({encoded.data(), static_cast<std::size_t>(bytes)});
    written += bytes;
    advance_(bytes);
  }
  check(tensor, total, allow_nonfinite_, where, notice);
  writer_.end_tensor();
  return total.error;
}

}  // namespace quern::convert
