// Activations to int8: the rule of reference.hpp, the same bits on every ISA, and what odd inputs
// give.
#include "catch.hpp"
#include "kernels/matmul_data.hpp"

namespace {

using namespace quern;
using namespace quern::kernels;

struct Quantized {
  std::vector<std::int8_t> codes;
  std::vector<float> scales;
  std::vector<std::int32_t> sums;
  QuantizedRows q{};

  Quantized(std::size_t tokens, std::size_t columns, std::size_t group) {
    q.codes_stride = (columns + 63) / 64 * 64;
    q.groups_stride = (columns + group - 1) / group;
    codes.assign(tokens * q.codes_stride, std::int8_t{99});
    scales.assign(tokens * q.groups_stride, -1.0f);
    sums.assign(scales.size(), -1);
    q.codes = codes.data();
    q.scales = scales.data();
    q.sums = sums.data();
  }
  bool operator==(const Quantized& o) const {
    return codes == o.codes && sums == o.sums && same_bits(scales, o.scales);
  }
};

const Kernels& scalar() {
  return *all_isas().back().kernels;
}

void require_same_on_all_isas(const std::vector<float>& x, std::size_t tokens, std::size_t columns,
                              std::size_t group, const Quantized& expected) {
  for (const IsaInfo& isa : tested_isas()) {
    if (!isa.supported) continue;
    Quantized got(tokens, columns, group);
    isa.kernels->quantize(x.data(), columns, tokens, columns, group, got.q);
    INFO(isa.name);
    REQUIRE(got == expected);
  }
}

}  // namespace

TEST_CASE("codes, scales and sums follow the rule for every width and group, on every ISA") {
  std::mt19937 rng(1);
  for (std::size_t group : {32u, 64u, 128u, 256u})
    for (std::size_t columns :
         {1u, 15u, 16u, 17u, 31u, 32u, 33u, 63u, 100u, 256u, 257u, 320u, 576u}) {
      const std::size_t tokens = 3;
      std::vector<float> x(tokens * columns);
      for (float& v : x) v = scaled_normal(rng, 3.0f);
      Quantized got(tokens, columns, group), reference(tokens, columns, group);
      scalar().quantize(x.data(), columns, tokens, columns, group, got.q);
      reference_quantize(x.data(), columns, tokens, columns, group, reference.q);
      INFO("columns " << columns << " group " << group);
      for (std::size_t i = 0; i < got.codes.size(); ++i) {
        REQUIRE(std::abs(got.codes[i] - reference.codes[i]) <= 1);
        REQUIRE(got.codes[i] >= -127);
      }
      for (std::size_t i = 0; i < got.scales.size(); ++i)
        REQUIRE(got.scales[i] == Approx(reference.scales[i]).epsilon(1e-6));
      for (std::size_t t = 0; t < tokens; ++t)
        for (std::size_t k = 0; k < got.q.codes_stride; k += group) {
          std::int32_t sum = 0;
          for (std::size_t i = k; i < std::min(got.q.codes_stride, k + group); ++i)
            sum += got.codes[t * got.q.codes_stride + i];
          if (k < columns)
            REQUIRE(sum == got.sums[t * got.q.groups_stride + k / group]);
          else
            REQUIRE(sum == 0);
        }
      require_same_on_all_isas(x, tokens, columns, group, got);
    }
}

TEST_CASE("a value comes back within half a step, whatever the magnitude") {
  std::mt19937 rng(2);
  for (float scale : {1e-30f, 1e-20f, 1e-3f, 1.0f, 1e10f, 1e36f}) {
    const std::size_t columns = 288, group = 32;
    std::vector<float> x(columns);
    for (float& v : x) v = scaled_normal(rng, scale);
    Quantized got(1, columns, group);
    scalar().quantize(x.data(), columns, 1, columns, group, got.q);
    for (std::size_t k = 0; k < columns; ++k) {
      const double d = double{got.scales[k / group]};
      INFO("scale " << scale << " column " << k);
      REQUIRE(std::fabs(d * got.codes[k] - double{x[k]}) <= d * 0.50001);
    }
    require_same_on_all_isas(x, 1, columns, group, got);
  }
}

TEST_CASE("zeros and values too small for a scale are zeros; NaN and infinity make the scale NaN") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr std::size_t kGroup = 32, kColumns = 10 * kGroup;  // some ISAs take eight groups at once
  for (float odd : {0.0f, -0.0f, 1e-40f, 1e-34f, inf, -inf, nan})
    for (std::size_t group : {0u, 1u, 7u, 8u, 9u})
      for (std::size_t at : {0u, 7u, 16u, 31u}) {
        std::vector<float> x(kColumns);
        for (std::size_t k = 0; k < kColumns; ++k)
          x[k] = k / kGroup != group ? static_cast<float>(k % kGroup + 1) : k % kGroup == at ? odd : 0.0f;
        Quantized got(1, kColumns, kGroup);
        scalar().quantize(x.data(), kColumns, 1, kColumns, kGroup, got.q);
        INFO("value " << odd << " at " << at << " of group " << group);
        for (std::size_t g = 0; g < kColumns / kGroup; ++g) {
          const bool zero = g == group;  // the other groups are not touched by it
          if (!zero || std::isfinite(odd))
            REQUIRE(got.scales[g] == (zero ? 0.0f : 32.0f / 127.0f));
          else
            REQUIRE(std::isnan(got.scales[g]));
          for (std::size_t k = 0; zero && k < kGroup; ++k) REQUIRE(got.codes[g * kGroup + k] == 0);
          REQUIRE((got.sums[g] == 0) == zero);
          REQUIRE(got.codes[g * kGroup + 31] == (zero ? 0 : 127));
        }
        for (const IsaInfo& isa : tested_isas()) {
          if (!isa.supported) continue;
          Quantized other(1, kColumns, kGroup);
          isa.kernels->quantize(x.data(), kColumns, 1, kColumns, kGroup, other.q);
          INFO(isa.name);
          REQUIRE(other.codes == got.codes);
          REQUIRE(other.sums == got.sums);
          for (std::size_t g = 0; g < kColumns / kGroup; ++g) {
            REQUIRE(std::isnan(other.scales[g]) == std::isnan(got.scales[g]));
            if (!std::isnan(got.scales[g])) REQUIRE(other.scales[g] == got.scales[g]);
          }
        }
      }
}
