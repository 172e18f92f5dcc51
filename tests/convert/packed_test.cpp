// Quantized checkpoints (tests/data/packed, written by scripts/make_packed_checkpoints.py): every matrix
// is found under the name of its float weight, gives the values that NumPy unpacks, bit for bit, and goes
// into the format that keeps it without a change.
#include <algorithm>
#include <cstring>
#include <map>

#include "base/mapped_file.hpp"
#include "catch.hpp"
#include "checkpoint/packed_tensor.hpp"
#include "checkpoint/safetensors.hpp"
#include "convert/policy.hpp"
#include "convert/transform.hpp"
#include "quant/formats.hpp"
#include "quant/pack.hpp"

using namespace quern;
using checkpoint::SourceTensor;

namespace {

const std::filesystem::path kData = std::filesystem::path(QUERN_SOURCE_DIR) / "tests/data/packed";

// What each matrix is kept in; "" where only the nearest native format is left.
const std::map<std::string, std::map<std::string, std::string>> kFormats = {
    {"gptq",
     {{"sym_g128", "int4_g128"},
      {"asym_g32", "int4_g32"},
      {"plain_g64", "int4_g64"},
      {"whole_rows", "int4_g128"},
      {"order_g32", ""},
      {"bits8_g32", "int8_g32"},
      {"bits8_sym_g128", "int8_g128"},
      {"bits2_g32", "int4_g32"},
      {"bits3_g32", "int4_g32"},
      {"wide_g64", "int4_f32"}}},
    {"gptq_v2", {{"asym_g32", "int4_g32"}, {"sym_g32", "int4_g128"}}},
    {"awq", {{"a", "int4_g64"}, {"b", "int4_g64"}}},
    {"pack_quantized",
     {{"sym_g128", "int4_g128"},
      {"asym_g32", "int4_g32"},
      {"f16_g64", "int4_g64"},
      {"f32_g128", "int4_f32"},
      {"channel", "int4_g128"},
      {"order", ""},
      {"bits8_channel", "int8_g128"},
      {"bits8_g32", "int8_g32"}}},
    {"int_quantized", {{"sym", "int8_g128"}, {"asym", "int8_g128"}}},
    {"float_quantized",
     {{"tensor", "f8_e4m3"}, {"channel", "f8_e4m3"}, {"block", "f8_e4m3"}, {"e5m2", ""}}},
    {"fp8", {{"block", "f8_e4m3"}, {"small", "f8_e4m3"}, {"powers", "f8_e4m3"}}},
    {"plain_fp8", {{"m", "f8_e4m3"}}},
    {"mxfp4", {{"experts.gate_up_proj", "mxfp4"}, {"experts.down_proj", "mxfp4"}}}};

std::vector<float> values_of(const SourceTensor& tensor) {
  std::vector<float> values(tensor.values);
  checkpoint::to_float(tensor, 0, tensor.values, values.data());
  return values;
}

// The number of values that differ in a bit (zeros of either sign are equal).
std::size_t n_different(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    count += std::memcmp(&a[i], &b[i], 4) != 0 && !(a[i] == 0 && b[i] == 0);
  return count;
}

// Rows of the tensor as the format keeps them, decoded again.
std::vector<float> kept_values(const SourceTensor& source, const quant::FormatTraits& format) {
  const checkpoint::PackedTensor& packed = *source.packed();
  const std::size_t rows = packed.shape().rows, columns = packed.shape().columns;
  std::vector<float> values(rows * columns);
  std::vector<std::byte> panel(quant::panel_bytes(format, columns), std::byte{0xA5});
  for (std::size_t first = 0; first < rows; first += quant::kPanelRows) {
    const std::size_t n = std::min(quant::kPanelRows, rows - first);
    checkpoint::PackedRow row[quant::kPanelRows];
    quant::CodeRow codes[quant::kPanelRows];
    for (std::size_t r = 0; r < n; ++r) {
      packed.row(first + r, row[r]);
      codes[r] = {row[r].codes.data(), row[r].scales.data(), row[r].zeros.data(),
                  static_cast<std::size_t>(packed.shape().group)};
    }
    quant::pack_code_rows(format, codes, columns, panel.data());
    for (std::size_t r = 0; r < quant::kPanelRows; ++r) {
      std::vector<float> one(columns);
      quant::decode_row(format, panel.data(), r, columns, one.data());
      if (r < n)
        std::copy(one.begin(), one.end(),
                  values.begin() + static_cast<std::ptrdiff_t>((first + r) * columns));
      else
        CHECK(one == std::vector<float>(columns, 0.0F));
    }
  }
  return values;
}

}  // namespace

TEST_CASE("packed matrices give NumPy's values and are kept without a change") {
  for (const auto& [scheme, formats] : kFormats) {
    const auto source = checkpoint::open_checkpoint(kData / scheme);
    const base::MappedFile file(kData / scheme / "expected.safetensors");
    const auto expected = checkpoint::parse_safetensors(file.bytes(), "expected");
    REQUIRE(expected.size() == formats.size());
    CHECK(source->tensors().size() == formats.size() + 1);  // and norm.weight
    for (const SourceTensor& wanted : expected) {
      INFO(scheme << " " << wanted.name);
      const SourceTensor* tensor = source->find(wanted.name);
      REQUIRE(tensor != nullptr);
      CHECK(tensor->shape == wanted.shape);
      REQUIRE(tensor->packed() != nullptr);
      CHECK(convert::is_quantized(*tensor));
      const std::vector<float> values = values_of(wanted);
      CHECK(n_different(values_of(*tensor), values) == 0);
      std::vector<float> middle(5);  // across the end of a row
      const std::uint64_t at = tensor->shape.back() - 2;
      checkpoint::to_float(*tensor, at, 5, middle.data());
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(at);
      CHECK(middle == std::vector<float>(begin, begin + 5));

      std::string name = wanted.name;
      if (name.ends_with(".weight")) name.resize(name.size() - 7);
      const quant::FormatTraits* format = convert::keep_format(*tensor);
      CHECK((format == nullptr ? "" : std::string(format->name)) == formats.at(name));
      if (format != nullptr) CHECK(n_different(kept_values(*tensor, *format), values) == 0);
    }
    source->check_unchanged();
  }
}

TEST_CASE("one expert of packed experts, gate and up interleaved") {
  const auto source = checkpoint::open_checkpoint(kData / "mxfp4");
  const SourceTensor& tensor = *source->find("experts.gate_up_proj");  // [3, 8, 64]
  const std::vector<float> all = values_of(tensor);
  for (const std::vector<std::string>& transforms :
       {std::vector<std::string>{"part 2 of 3", "every 2 from 1"},
        std::vector<std::string>{"part 2 of 3", "transpose", "every 2 from 1"}}) {
    const convert::RowView view(tensor, transforms, "test");
    REQUIRE(view.rows() == 4);
    REQUIRE(view.columns() == 64);
    CHECK_FALSE(view.transposed());
    std::vector<float> values(4 * 64);
    view.read(0, 4, values.data(), 64);
    for (std::size_t row = 0; row < 4; ++row) {
      CHECK(view.stored_row(row) == 2 * 8 + 2 * row + 1);
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>((16 + 2 * row + 1) * 64);
      CHECK(std::equal(begin, begin + 64, values.begin() + static_cast<std::ptrdiff_t>(row * 64)));
    }
  }
}
