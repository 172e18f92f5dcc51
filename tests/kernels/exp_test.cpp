// The exponent of softmax weights, through the scalar primitives (the others give their bits: attention_test.cpp).
#include <cmath>
#include <cstring>
#include <limits>

#include "catch.hpp"
#include "kernels/ops/exp.hpp"
#include "kernels/primitives/scalar.hpp"

namespace quern::kernels {
namespace {

float exp2_weight(float x) {
  float lanes[16];
  Scalar::store(lanes, Exp<Scalar>::exp2_weight(Scalar::set(x)));
  return lanes[7];
}

}  // namespace

TEST_CASE("exp2_weight is 2^x to 3e-7 over its range") {
  double worst = 0;
  for (float x = -126.4f; x <= 1.0f; x += 0.000937f) {
    const double exact = std::exp2(static_cast<double>(x));
    worst = std::max(worst, std::fabs(static_cast<double>(exp2_weight(x)) / exact - 1));
  }
  CHECK(worst < 3e-7);
}

TEST_CASE("exp2_weight is exact where weights must be") {
  CHECK(exp2_weight(0.0f) == 1.0f);
  for (int n = -126; n <= 0; ++n) CHECK(exp2_weight(static_cast<float>(n)) == std::ldexp(1.0f, n));
  for (const float x : {-126.5f, -127.0f, -300.0f, -3e38f, -std::numeric_limits<float>::infinity()}) {
    CHECK(exp2_weight(x) == 0.0f);
    CHECK_FALSE(std::signbit(exp2_weight(x)));
  }
}

TEST_CASE("exp2_weight keeps every NaN") {
  for (const std::uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7fc00001u, 0x7fffffffu, 0xffffffffu, 0x7fc0017fu}) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    CHECK(std::isnan(exp2_weight(x)));
  }
}

}  // namespace quern::kernels
