// Encoding: error bounds, extremes, determinism, padding, importance.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/small_float.hpp"
#include "catch.hpp"
#include "quant/formats.hpp"

using namespace quern;
using quant::FormatId;
using quant::FormatTraits;

namespace {

std::vector<std::byte> encode(const FormatTraits& format, const std::vector<float>& values,
                              std::size_t columns, const float* importance = nullptr) {
  std::vector<std::byte> panel(quant::panel_bytes(format, columns));
  quant::encode_panel(format, values.data(), columns, columns, importance, panel.data());
  return panel;
}

std::vector<float> decode(const FormatTraits& format, const std::vector<std::byte>& panel,
                          std::size_t columns) {
  std::vector<float> values(16 * columns);
  for (std::size_t row = 0; row < 16; ++row)
    quant::decode_row(format, panel.data(), row, columns, values.data() + row * columns);
  return values;
}

template <class Distribution>
std::vector<float> random_panel(std::size_t columns, unsigned seed, Distribution distribution,
                                double scale = 0.02) {
  std::mt19937_64 random(seed);
  std::vector<float> values(16 * columns);
  for (float& value : values) value = static_cast<float>(scale * distribution(random));
  return values;
}

double relative_rmse(const std::vector<float>& values, const std::vector<float>& decoded) {
  double error = 0, square = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = double{decoded[i]} - double{values[i]};
    error += difference * difference;
    square += double{values[i]} * double{values[i]};
  }
  return std::sqrt(error / square);
}

// Worst error of one value, as a share of the largest magnitude in its group (the row and
// super-block for q4), that a format may leave.
double worst_share(FormatId id) {
  switch (id) {
    case FormatId::f32:
      return 0;
    case FormatId::bf16:
      return 0x1p-8;
    case FormatId::f16:
      return 0x1p-11;
    case FormatId::q8:
      return 0.5 / 114 * 1.01;  // half a step of the widest grid that is tried
    case FormatId::f8_e4m3:
      return 0x1p-4;
    case FormatId::int8_g32:
    case FormatId::int8_g128:
      return 0.02;
    case FormatId::q6_k:
      return 0.04;
    case FormatId::q4_1:
      return 0.12;
    case FormatId::q5_0:
    case FormatId::q5_1:
      return 0.06;
    default:
      return 0.2;
  }
}

// Where f16 scales end: steps of the smallest one, and what the largest one reaches.
double absolute_slack(FormatId id) {
  switch (id) {
    case FormatId::f32:
      return 0;
    case FormatId::bf16:
      return 0x1p-134;
    case FormatId::q4_k:
    case FormatId::q5_k:
    case FormatId::q6_k:
      return 0x1p-25 * 127 * 32;  // an f16 that stands for so many steps
    default:
      return 0x1p-24 * 16;
  }
}

}  // namespace

TEST_CASE("relative error of a Gaussian and a Student-t5 matrix") {
  const struct {
    const char* name;
    double gauss, student;
  } bounds[] = {{"f32", 0, 0},          {"bf16", .0017, .0017}, {"f16", .0003, .0003},
                {"q8", .0055, .0070},   {"q4", .0690, .0770},   {"q4_0", .0820, .1035},
                {"q4_1", .0710, .0820}, {"q5_0", .0406, .0525}, {"q5_1", .0345, .0400},
                {"q4_k", .0900, .1050}, {"q5_k", .0440, .0520}, {"q6_k", .0240, .0280}, {"mxfp4", .1250, .1250},
                {"int4_g32", .0860, .1050}, {"int4_g64", .1000, .1250}, {"int4_g128", .1100, .1450},
                {"int4_f32", .0860, .1050}, {"int8_g32", .0060, .0080}, {"int8_g128", .0080, .0120},
                {"f8_e4m3", .0270, .0270}};
  const std::size_t columns = 4096;
  const auto gauss = random_panel(columns, 1, std::normal_distribution<double>());
  const auto student = random_panel(columns, 2, std::student_t_distribution<double>(5));
  for (const auto& bound : bounds) {
    const FormatTraits& format = *quant::find_format(bound.name);
    INFO(bound.name);
    CHECK(relative_rmse(gauss, decode(format, encode(format, gauss, columns), columns)) <=
          bound.gauss);
    CHECK(relative_rmse(student, decode(format, encode(format, student, columns), columns)) <=
          bound.student);
  }
}

TEST_CASE("any magnitude: finite, and every value within its bound") {
  const std::size_t columns = 288;  // a full super-block and a tail
  for (const FormatTraits& format : quant::all_formats())
    for (int exponent = -149; exponent <= 127; exponent += 3) {
      INFO(format.name << " 2^" << exponent);
      const auto values = random_panel(columns, 3, std::uniform_real_distribution<double>(-1, 1),
                                       std::ldexp(1.0, exponent));
      const auto decoded = decode(format, encode(format, values, columns), columns);
      double largest = 0, worst = 0;
      bool finite = true;
      for (std::size_t i = 0; i < values.size(); ++i) {
        finite = finite && std::isfinite(decoded[i]);
        largest = std::max(largest, std::fabs(double{values[i]}));
        worst = std::max(worst, std::fabs(double{decoded[i]} - double{values[i]}));
      }
      CHECK(finite);
      const bool wide = format.id == FormatId::f32 || format.id == FormatId::bf16 ||
                        format.id == FormatId::f8_e4m3;
      if (wide || exponent <= 15)
        CHECK(worst <= worst_share(format.id) * largest + absolute_slack(format.id));
      else
        CHECK(worst <= largest);  // saturated, with the right sign
    }
}

TEST_CASE("zero, constant and sparse groups, one huge among tiny values") {
  const std::size_t columns = 320;
  std::vector<std::vector<float>> cases;
  cases.emplace_back(16 * columns, 0.0F);
  cases.emplace_back(16 * columns, -0.0F);
  for (const float constant : {1.0F, -0.37F, 1e-9F, -1e-38F, 1e-45F, 3e4F})
    cases.emplace_back(16 * columns, constant);
  cases.emplace_back(16 * columns, 0.0F);
  for (std::size_t i = 0; i < 16 * columns; i += 37) cases.back()[i] = i % 2 == 0 ? 0.5F : -0.25F;
  cases.emplace_back(16 * columns, 1e-6F);
  for (std::size_t i = 5; i < 16 * columns; i += 256) cases.back()[i] = -1000;
  for (const FormatTraits& format : quant::all_formats())
    for (std::size_t n = 0; n < cases.size(); ++n) {
      INFO(format.name << " case " << n);
      const std::vector<float>& values = cases[n];
      const auto decoded = decode(format, encode(format, values, columns), columns);
      double largest = 0, worst = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        largest = std::max(largest, std::fabs(double{values[i]}));
        worst = std::max(worst, std::fabs(double{decoded[i]} - double{values[i]}));
      }
      CHECK(worst <= worst_share(format.id) * largest + absolute_slack(format.id));
      if (largest == 0) CHECK(worst == 0);
    }
}

TEST_CASE("NaN and infinities never leave an integer format") {
  const std::size_t columns = 288;
  auto values = random_panel(columns, 4, std::normal_distribution<double>());
  const float infinity = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < values.size(); i += 50) values[i] = i % 4 == 0 ? infinity : -infinity;
  for (std::size_t i = 7; i < values.size(); i += 300) values[i] = std::nanf("");
  for (const FormatTraits& format : quant::all_formats()) {
    if (!format.integer) continue;
    INFO(format.name);
    const auto decoded = decode(format, encode(format, values, columns), columns);
    CHECK(std::all_of(decoded.begin(), decoded.end(), [](float v) { return std::isfinite(v); }));
  }
}

TEST_CASE("what a format holds is encoded without loss") {
  std::mt19937 random(11);
  for (const char* name : {"f32", "bf16", "f16", "q8"}) {
    const FormatTraits& format = *quant::find_format(name);
    std::vector<float> values(16 * 64);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int code = static_cast<int>(random() % 255) - 127;
      values[i] = static_cast<float>(i % 32 == 0 ? 127 : code) * 0x1p-9F;
    }
    INFO(name);
    CHECK(decode(format, encode(format, values, 64), 64) == values);
  }
}

TEST_CASE("same values, same bytes, whatever the memory held before") {
  const std::size_t columns = 352;
  const auto values = random_panel(columns, 5, std::normal_distribution<double>());
  for (const FormatTraits& format : quant::all_formats()) {
    std::vector<std::byte> a(quant::panel_bytes(format, columns), std::byte{0x00});
    std::vector<std::byte> b(quant::panel_bytes(format, columns), std::byte{0xA5});
    quant::encode_panel(format, values.data(), columns, columns, nullptr, a.data());
    quant::encode_panel(format, values.data(), columns, columns, nullptr, b.data());
    INFO(format.name);
    CHECK(a == b);
  }
}

TEST_CASE("rows are independent of their neighbours") {
  const std::size_t columns = 256;
  const auto values = random_panel(columns, 6, std::normal_distribution<double>());
  auto other = values;
  for (std::size_t i = columns; i < other.size(); ++i) other[i] *= -7;
  for (const FormatTraits& format : quant::all_formats()) {
    const auto a = decode(format, encode(format, values, columns), columns);
    const auto b = decode(format, encode(format, other, columns), columns);
    INFO(format.name);
    CHECK(std::equal(a.begin(), a.begin() + columns, b.begin()));
    CHECK(!std::equal(a.begin() + columns, a.end(), b.begin() + columns));
  }
}

TEST_CASE("columns that do not fill the last step are padded without touching the fit") {
  for (const FormatTraits& format : quant::all_formats())
    for (const std::size_t columns : {1UL, 17UL, 31UL, 33UL, 257UL, 271UL}) {
      const auto values = random_panel(columns, 8, std::normal_distribution<double>());
      const auto decoded = decode(format, encode(format, values, columns), columns);
      INFO(format.name << " " << columns);
      const bool f8 = format.id == FormatId::f8_e4m3;
      CHECK(relative_rmse(values, decoded) < (format.integer ? 0.16 : f8 ? 0.03 : 0.002));
    }
}

TEST_CASE("importance lowers the weighted error") {
  const std::size_t columns = 512;
  const auto values = random_panel(columns, 9, std::normal_distribution<double>());
  std::vector<float> importance(columns);
  std::mt19937 random(10);
  for (float& weight : importance) weight = random() % 8 == 0 ? 100.0F : 1.0F;
  for (const char* name : {"q4", "q4_0", "q4_1", "q5_0", "q5_1"}) {
    const FormatTraits& format = *quant::find_format(name);
    const auto weighted_error = [&](const std::vector<float>& decoded) {
      double sum = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double difference = double{decoded[i]} - double{values[i]};
        sum += double{importance[i % columns]} * difference * difference;
      }
      return sum;
    };
    const double without = weighted_error(decode(format, encode(format, values, columns), columns));
    const double with =
        weighted_error(decode(format, encode(format, values, columns, importance.data()), columns));
    INFO(name);
    CHECK(with < 0.9 * without);
  }
}
