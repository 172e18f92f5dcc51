// Every primitive of every ISA gives the bits of the scalar one, over special values, all f16
// patterns and random ones of every magnitude.
#include "kernels/primitives_probe.hpp"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/small_float.hpp"
#include "catch.hpp"
#include "kernels/isas.hpp"
#include "kernels/sample.hpp"

namespace {

using namespace quern::kernels;

// The probes of the instruction sets that are tested; of the emulated ones also those without a table of kernels.
const std::vector<const Probe*>& tested_probes() {
  static const std::vector<const Probe*> probes = [] {
    std::vector<const Probe*> list;
    [[maybe_unused]] bool avx2 = false;
    for (const IsaInfo& isa : all_isas()) avx2 = avx2 || (isa.name == "avx2" && isa.supported);
    [[maybe_unused]] const auto add = [&](const Probe& probe) {
      const std::string name = probe.name;
      bool supported = avx2 && name.find("_emulated") != std::string::npos && (wanted_isa(name) || all_wanted());
      for (const IsaInfo& isa : tested_isas()) supported = supported || (isa.name == name && isa.supported);
      if (supported) list.push_back(&probe);
    };
    add(probe_scalar);
#ifdef QUERN_PROBE_avx2
    add(probe_avx2);
#endif
#ifdef QUERN_PROBE_avxvnni
    add(probe_avxvnni);
#endif
#ifdef QUERN_PROBE_avx512
    add(probe_avx512);
#endif
#ifdef QUERN_PROBE_avx512vnni
    add(probe_avx512vnni);
#endif
#ifdef QUERN_PROBE_zen5
    add(probe_zen5);
#endif
#ifdef QUERN_PROBE_zen4
    add(probe_zen4);
#endif
#ifdef QUERN_PROBE_amx
    add(probe_amx);
#endif
#ifdef QUERN_PROBE_neon
    add(probe_neon);
#endif
#ifdef QUERN_PROBE_neon_i8mm
    add(probe_neon_i8mm);
#endif
#ifdef QUERN_PROBE_avxvnni_emulated
    add(probe_avxvnni_emulated);
#endif
#ifdef QUERN_PROBE_avx512_emulated
    add(probe_avx512_emulated);
#endif
#ifdef QUERN_PROBE_avx512vnni_emulated
    add(probe_avx512vnni_emulated);
#endif
#ifdef QUERN_PROBE_zen4_emulated
    add(probe_zen4_emulated);
#endif
#ifdef QUERN_PROBE_amx_emulated
    add(probe_amx_emulated);
#endif
    std::string names;
    for (const Probe* probe : list) names += " " + std::string(probe->name);
    std::printf("primitives of:%s\n", names.c_str());
    return list;
  }();
  return probes;
}

// Same bits; NaN equals NaN whatever its payload.
bool same_row(const unsigned char* x, const unsigned char* y, bool floats) {
  if (!floats) return std::memcmp(x, y, 64) == 0;
  for (int i = 0; i < 16; ++i) {
    float a, b;
    std::memcpy(&a, x + 4 * i, 4);
    std::memcpy(&b, y + 4 * i, 4);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (std::bit_cast<std::uint32_t>(a) != std::bit_cast<std::uint32_t>(b)) return false;
  }
  return true;
}

// `out` is aligned for the vector stores of every ISA.
void require_same(const ProbeInput& in, std::size_t case_index) {
  alignas(64) ProbeOutput expected{};
  probe_scalar.run(in, expected);
  for (const Probe* probe : tested_probes()) {
    alignas(64) ProbeOutput got{};
    probe->run(in, got);
    std::string wrong;
    for (std::size_t row = 0; row < kProbeRows; ++row) {
      const bool floats = row < kIntAdd && row != kStoreF16;
      if (!same_row(expected.row[row], got.row[row], floats)) wrong += " " + std::to_string(row);
    }
    INFO(probe->name << " case " << case_index << " ProbeRow" << wrong);
    REQUIRE(wrong.empty());
  }
}

float random_float(std::mt19937& rng) {
  const int exponent = static_cast<int>(rng() % 40) - 20;
  const float mantissa = static_cast<float>(rng()) / 2147483648.0f - 1.0f;
  return std::ldexp(mantissa, rng() % 8 == 0 ? exponent * 6 : exponent);
}

ProbeInput random_input(std::mt19937& rng) {
  ProbeInput in;
  for (int k = 0; k < 16; ++k) {
    in.a[k] = random_float(rng);
    in.b[k] = rng() % 8 == 0 ? in.a[k] : random_float(rng);
    in.c[k] = random_float(rng);
    in.i[k] = static_cast<std::int32_t>(rng() >> 2);
    in.j[k] = static_cast<std::int32_t>(rng() >> 2) - (1 << 29);
  }
  for (auto& h : in.half) h = static_cast<std::uint16_t>(rng());
  for (auto& w : in.line) w = static_cast<std::int8_t>(rng());
  for (auto& x : in.activation) x = static_cast<std::int8_t>(static_cast<int>(rng() % 255) - 127);
  for (auto& t : in.table) t = static_cast<std::int8_t>(rng());
  in.n = 1 + rng() % 16;
  return in;
}

}  // namespace

TEST_CASE("every ISA's primitives give the scalar bits for random values") {
  std::mt19937 rng(1);
  for (std::size_t i = 0; i < 3000 / sample_step(); ++i) require_same(random_input(rng), i);
}

TEST_CASE("every ISA's primitives give the scalar bits for special floats") {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> special = {0.0f,
                                      -0.0f,
                                      1.0f,
                                      -1.0f,
                                      0.5f,
                                      1.5f,
                                      2.5f,
                                      -2.5f,
                                      inf,
                                      -inf,
                                      std::numeric_limits<float>::quiet_NaN(),
                                      1e-45f,
                                      -1e-40f,
                                      1.17549435e-38f,
                                      3.4e38f,
                                      -3.4e38f,
                                      65504.0f,
                                      65519.99f,
                                      65520.0f,
                                      5.9604645e-8f,
                                      2.9802322e-8f,
                                      2.98023224e-8f * 1.001f,
                                      8388607.5f,
                                      2147483520.0f};
  std::mt19937 rng(2);
  for (std::size_t a = 0; a < special.size(); ++a)
    for (std::size_t b = 0; b < special.size(); ++b) {
      ProbeInput in = random_input(rng);
      for (std::size_t k = 0; k < 16; ++k) {
        in.a[k] = special[(a + k) % special.size()];
        in.b[k] = special[(b + k * k) % special.size()];
      }
      // Scalar int conversion of NaN is undefined: c stays finite.
      for (std::size_t k = 0; k < 16; ++k) {
        const float x = special[(a + b + k) % special.size()];
        in.c[k] = std::isnan(x) ? 2.5f : x;
      }
      require_same(in, a * special.size() + b);
    }
}

TEST_CASE("conversion from f16 and bf16 is that of base/small_float for every bit pattern") {
  for (std::uint32_t h = 0; h < 65536; h += 16) {
    std::mt19937 rng(h);
    ProbeInput in = random_input(rng);
    for (std::uint32_t k = 0; k < 32; ++k) in.half[k] = static_cast<std::uint16_t>(h + k % 16);
    alignas(64) ProbeOutput out{};
    probe_scalar.run(in, out);
    for (std::uint32_t k = 0; k < 16; ++k) {
      float f16, bf16;
      std::memcpy(&f16, out.row[kLoadF16] + 4 * k, 4);
      std::memcpy(&bf16, out.row[kLoadBf16] + 4 * k, 4);
      const float expected = quern::base::f16_to_float(in.half[k]);
      INFO("pattern " << h + k);
      REQUIRE((f16 == expected || (std::isnan(f16) && std::isnan(expected))));
      const float wide = quern::base::bf16_to_float(in.half[k]);
      REQUIRE((bf16 == wide || (std::isnan(bf16) && std::isnan(wide))));
    }
    require_same(in, h);
  }
}

TEST_CASE("conversion from 8-bit floats is that of base/small_float for every finite code") {
  for (int first = 0; first < 256; first += 16) {
    std::mt19937 rng(9);
    ProbeInput in = random_input(rng);
    for (int k = 0; k < 16; ++k) in.line[k] = static_cast<std::int8_t>(first + k);
    alignas(64) ProbeOutput out{};
    probe_scalar.run(in, out);
    for (int k = 0; k < 16; ++k) {
      float got;
      std::memcpy(&got, out.row[kLoadE4m3] + 4 * k, 4);
      const float expected = quern::base::f8_e4m3_to_float(static_cast<std::uint8_t>(first + k));
      INFO("code " << first + k);
      REQUIRE((got == expected || std::isnan(expected)));
    }
    require_same(in, static_cast<std::size_t>(first));
  }
}

TEST_CASE("rounding to f16 is that of base/small_float") {
  std::mt19937 rng(3);
  for (int i = 0; i < 2000; ++i) {
    ProbeInput in = random_input(rng);
    for (float& a : in.a)
      if (rng() % 2 == 0)  // ties and their neighbours
        a = quern::base::f16_to_float(static_cast<std::uint16_t>(rng() % 0x7c00)) *
            (1.0f + static_cast<float>(static_cast<int>(rng() % 5) - 2) * 0x1p-12f);
    alignas(64) ProbeOutput out{};
    probe_scalar.run(in, out);
    for (int k = 0; k < 16; ++k) {
      std::uint16_t got;
      std::memcpy(&got, out.row[kStoreF16] + 2 * k, 2);
      INFO(in.a[k]);
      REQUIRE(got == quern::base::float_to_f16(in.a[k]));
    }
    require_same(in, static_cast<std::size_t>(i));
  }
}

TEST_CASE("byte products are exact at the extremes") {
  // Expected from plain integers, not from the scalar path.
  for (int w : {-128, -127, -1, 0, 1, 127})
    for (int x : {-127, -1, 0, 1, 127}) {
      std::mt19937 rng(4);
      ProbeInput in = random_input(rng);
      for (auto& i : in.i) i = 0;
      for (auto& code : in.line) code = static_cast<std::int8_t>(w);
      for (auto& a : in.activation) a = static_cast<std::int8_t>(x);
      for (const Probe* probe : tested_probes()) {
        alignas(64) ProbeOutput out{};
        probe->run(in, out);
        for (ProbeRow row : {kDot4, kDot4Biased}) {
          // kDot4Biased starts with the correction, so both rows hold the signed product.
          std::int32_t got[16];
          std::memcpy(got, out.row[row], 64);
          INFO(probe->name << " row " << row << " w " << w << " x " << x);
          for (std::int32_t v : got) REQUIRE(v == 4 * w * x);
        }
      }
    }
}

TEST_CASE("every table that is tested has its primitives tested") {
  for (const IsaInfo& isa : tested_isas()) {
    if (!isa.supported) continue;
    INFO(isa.name);
    bool found = false;
    for (const Probe* probe : tested_probes()) found = found || probe->name == isa.name;
    CHECK(found);
  }
}
