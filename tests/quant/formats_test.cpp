// The list of formats and the geometry of matrices in them.
#include "quant/formats.hpp"

#include <set>
#include <string>

#include "catch.hpp"

using namespace quern;
using quant::FormatId;
using quant::FormatTraits;

TEST_CASE("every format has its own id, name and place in the list") {
  std::set<FormatId> ids;
  std::set<std::string_view> names;
  REQUIRE(quant::all_formats().size() == quant::kFormatCount);
  for (const FormatTraits& format : quant::all_formats()) {
    CHECK(ids.insert(format.id).second);
    CHECK(names.insert(format.name).second);
    CHECK(quant::find_format(format.id) == &format);
    CHECK(quant::find_format(format.name) == &format);
    CHECK(&quant::all_formats()[quant::format_index(format.id)] == &format);
    CHECK(format.integer == (format.activation_group != 0));
    if (format.integer) CHECK(format.column_step == quant::kGroupColumns);
  }
}

TEST_CASE("ids on disk do not move") {
  CHECK(static_cast<int>(quant::find_format("f32")->id) == 2);
  CHECK(static_cast<int>(quant::find_format("bf16")->id) == 3);
  CHECK(static_cast<int>(quant::find_format("f16")->id) == 4);
  CHECK(static_cast<int>(quant::find_format("q8")->id) == 16);
  CHECK(static_cast<int>(quant::find_format("q4")->id) == 17);
  CHECK(static_cast<int>(quant::find_format("q4_0")->id) == 32);
  CHECK(static_cast<int>(quant::find_format("q4_1")->id) == 33);
  CHECK(static_cast<int>(quant::find_format("q5_0")->id) == 34);
  CHECK(static_cast<int>(quant::find_format("q5_1")->id) == 35);
  const struct {
    const char* name;
    int id;
  } later[] = {{"q4_k", 36},     {"q5_k", 37},      {"q6_k", 38},     {"mxfp4", 40},    {"int4_g32", 48},
               {"int4_g64", 49}, {"int4_g128", 50}, {"int4_f32", 51}, {"int8_g32", 52}, {"int8_g128", 53},
               {"f8_e4m3", 56}};
  for (const auto& entry : later)
    CHECK(static_cast<int>(quant::find_format(entry.name)->id) == entry.id);
}

TEST_CASE("names are found in any case, unknown ones are not") {
  CHECK(quant::find_format("Q4_0") == quant::find_format(FormatId::q4_0));
  CHECK(quant::find_format("BF16") == quant::find_format(FormatId::bf16));
  CHECK(quant::find_format("") == nullptr);
  CHECK(quant::find_format("q4_") == nullptr);
  CHECK(quant::find_format("q4_00") == nullptr);
  CHECK(quant::find_format("rows_f32") == nullptr);
  CHECK(quant::find_format(static_cast<FormatId>(0)) == nullptr);
  CHECK(quant::find_format(static_cast<FormatId>(5)) == nullptr);
  REQUIRE(quant::find_format(FormatId::rows_f32) != nullptr);
  CHECK(quant::format_index(FormatId::rows_f32) == quant::kFormatCount);
}

TEST_CASE("bits per weight of full super-blocks") {
  const struct {
    const char* name;
    double bits;
  } expected[] = {{"f32", 32},   {"bf16", 16}, {"f16", 16},   {"q8", 8.5}, {"q4", 4.3125},
                  {"q4_0", 4.5}, {"q4_1", 5},  {"q5_0", 5.5}, {"q5_1", 6},
                  {"q4_k", 4.5}, {"q5_k", 5.5}, {"q6_k", 6.5625}, {"mxfp4", 4.25}, {"int4_g32", 4.75},
                  {"int4_g64", 4.375}, {"int4_g128", 4.1875}, {"int4_f32", 5.25}, {"int8_g32", 9.25},
                  {"int8_g128", 8.3125}, {"f8_e4m3", 8.25}};
  for (const auto& entry : expected) {
    INFO(entry.name);
    const FormatTraits& format = *quant::find_format(entry.name);
    CHECK(quant::bits_per_weight(format, 1024, 2048) == entry.bits);
  }
}

TEST_CASE("sizes: panels cover the rows, super-blocks the columns") {
  for (const FormatTraits& format : quant::all_formats())
    for (const std::size_t columns :
         {1UL, 31UL, 32UL, 33UL, 255UL, 256UL, 257UL, 320UL, 576UL, 1536UL}) {
      INFO(format.name << " " << columns);
      const std::size_t padded = quant::padded_columns(format, columns);
      CHECK(padded >= columns);
      CHECK(padded < columns + format.column_step);
      CHECK(padded % format.column_step == 0);
      std::size_t sum = 0;
      for (std::size_t at = 0; at < padded; at += 256)
        sum += format.super_block_bytes(std::min<std::size_t>(256, padded - at));
      CHECK(quant::panel_bytes(format, columns) == sum);
      CHECK(quant::tensor_bytes(format, 16, columns) == sum);
      CHECK(quant::tensor_bytes(format, 17, columns) == 2 * sum);
    }
  const FormatTraits& rows = *quant::find_format(FormatId::rows_f32);
  CHECK(quant::tensor_bytes(rows, 3, 7) == 84);
}
