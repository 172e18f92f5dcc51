// Every code of the four small floats, and rounding against a brute-force nearest code.
#include "base/small_float.hpp"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "catch.hpp"

using namespace quern::base;

namespace {

struct SmallFloat {
  const char* name;
  unsigned codes;
  float (*widen)(std::uint32_t);
  std::uint32_t (*narrow)(float);
  float max_finite;
  bool saturates;
};

const SmallFloat kTypes[] = {
    {"f16", 65536, [](std::uint32_t c) { return f16_to_float(static_cast<F16>(c)); },
     [](float x) -> std::uint32_t { return float_to_f16(x); }, 65504.0F, false},
    {"f8_e4m3", 256, [](std::uint32_t c) { return f8_e4m3_to_float(static_cast<F8>(c)); },
     [](float x) -> std::uint32_t { return float_to_f8_e4m3(x); }, 448.0F, true},
    {"f8_e5m2", 256, [](std::uint32_t c) { return f8_e5m2_to_float(static_cast<F8>(c)); },
     [](float x) -> std::uint32_t { return float_to_f8_e5m2(x); }, 57344.0F, true},
};

}  // namespace

TEST_CASE("each finite code widens and narrows to itself") {
  for (const SmallFloat& type : kTypes) {
    INFO(type.name);
    for (std::uint32_t code = 0; code < type.codes; ++code) {
      const float value = type.widen(code);
      if (std::isnan(value)) {
        CHECK(std::isnan(type.widen(type.narrow(value))));
      } else if (std::isfinite(value)) {
        CHECK(type.narrow(value) == code);
        CHECK(std::fabs(value) <= type.max_finite);
      }
    }
  }
}

TEST_CASE("narrowing picks the nearest code, ties to even") {
  std::mt19937 random(1);
  for (const SmallFloat& type : kTypes) {
    INFO(type.name);
    std::vector<float> values;  // finite, ascending, of the positive codes
    for (std::uint32_t code = 0; code < type.codes / 2 && std::isfinite(type.widen(code)); ++code)
      values.push_back(type.widen(code));
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      REQUIRE(values[i] < values[i + 1]);
      const float middle = values[i] + (values[i + 1] - values[i]) / 2;
      CHECK(type.narrow(middle) == (i % 2 == 0 ? i : i + 1));
      CHECK(type.narrow(std::nextafter(middle, 0.0F)) == i);
      CHECK(type.narrow(std::nextafter(middle, 1e9F)) == i + 1);
      CHECK(type.narrow(-middle) == (type.codes / 2 | (i % 2 == 0 ? i : i + 1)));
    }
  }
}

TEST_CASE("beyond the largest finite value f8 saturates and f16 becomes infinite") {
  for (const SmallFloat& type : kTypes) {
    for (const float big : {type.max_finite * 1.2F, 1e38F, INFINITY}) {
      const float back = type.widen(type.narrow(big));
      CHECK(back == (type.saturates ? type.max_finite : INFINITY));
      CHECK(type.widen(type.narrow(-big)) == -back);
    }
  }
}

TEST_CASE("bf16 rounds to nearest even") {
  CHECK(bf16_to_float(float_to_bf16(1.0F)) == 1.0F);
  CHECK(float_to_bf16(1.00390625F) == 0x3F80);   // halfway, even below
  CHECK(float_to_bf16(1.01171875F) == 0x3F82);   // halfway, even above
  CHECK(std::isnan(bf16_to_float(float_to_bf16(NAN))));
  CHECK(bf16_to_float(float_to_bf16(INFINITY)) == INFINITY);
  for (std::uint32_t code = 0; code < 65536; ++code) {
    const float value = bf16_to_float(static_cast<Bf16>(code));
    if (!std::isnan(value)) CHECK(float_to_bf16(value) == code);
  }
}
