// The cache's codes: consistent with base/small_float.hpp, bounded error, one token's bytes from
// that token alone, and the byte count the contract's formula gives.
#include <algorithm>
#include <cmath>

#include "attention_cases.hpp"
#include "base/small_float.hpp"
#include "catch.hpp"

namespace quern::kernels {
namespace {

// What store_kv keeps of a row, read back by the reference.
std::vector<float> through_cache(const Kernels& kernels, CacheType type,
                                 const std::vector<float>& row) {
  const CacheLayout layout = make_cache_layout(type, type, row.size(), row.size());
  std::vector<std::byte> block(layout.block_bytes);
  kernels.store_kv(layout, row.data(), row.data(), block.data(), 13);
  std::vector<float> k(row.size()), v(row.size());
  reference_load_kv(layout, block.data(), 13, k.data(), v.data());
  for (std::size_t i = 0; i < row.size(); ++i)
    if (type != CacheType::int4)  // its keys are rotated before they are rounded
      CHECK((k[i] == v[i] || (std::isnan(k[i]) && std::isnan(v[i]))));
  return type == CacheType::int4 ? v : k;
}

// Values that visit every rounding of a small float: all codes, their midpoints, both neighbours of
// each.
std::vector<float> hard_values(float (*decode)(std::uint32_t), std::uint32_t n_codes) {
  std::vector<float> x;
  for (std::uint32_t code = 0; code + 1 < n_codes; ++code) {
    const float a = decode(code), b = decode(code + 1);
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    const float mid = a + (b - a) / 2;
    for (float y : {a, mid, std::nextafter(mid, a), std::nextafter(mid, b)})
      for (float sign : {1.0f, -1.0f}) x.push_back(sign * y);
  }
  return x;
}
float decode_e4m3(std::uint32_t code) {
  return base::f8_e4m3_to_float(static_cast<base::F8>(code));
}
float decode_e5m2(std::uint32_t code) {
  return base::f8_e5m2_to_float(static_cast<base::F8>(code));
}
float decode_f16(std::uint32_t code) {
  return base::f16_to_float(static_cast<base::F16>(code));
}

}  // namespace

TEST_CASE("fp8 codes of the cache are those of base") {
  for (const IsaInfo* isa : supported_isas()) {
    for (bool e4m3 : {true, false}) {
      // A row whose largest value is the type's own gets scale 1: the codes are plain conversions.
      const float top = e4m3 ? 448.0f : 57344.0f;
      std::vector<float> x = e4m3 ? hard_values(decode_e4m3, 0x7f) : hard_values(decode_e5m2, 0x7c);
      for (float y : {447.0f, 1e-38f, 1e-45f, 0.0f, 1e-10f})
        for (float sign : {1.0f, -1.0f}) x.push_back(sign * y);
      x.push_back(top);
      const auto y =
          through_cache(*isa->kernels, e4m3 ? CacheType::fp8_e4m3 : CacheType::fp8_e5m2, x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const float want = e4m3 ? base::f8_e4m3_to_float(base::float_to_f8_e4m3(x[i]))
                                : base::f8_e5m2_to_float(base::float_to_f8_e5m2(x[i]));
        INFO(isa->name << " e4m3 " << e4m3 << " x " << x[i]);
        CHECK(std::memcmp(&y[i], &want, sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("attention reads all 256 fp8 codes as base does") {
  for (const IsaInfo* isa : supported_isas()) {
    for (CacheType type : {CacheType::fp8_e4m3, CacheType::fp8_e5m2}) {
      for (std::uint32_t code = 0; code < 256; ++code) {
        // One key: its weight is 1, so the output is the value the code stands for.
        const CacheLayout layout = make_cache_layout(CacheType::f32, type, 1, 1);
        std::vector<std::byte> block(layout.block_bytes);
        block[layout.v_offset] = static_cast<std::byte>(code);
        const float one = 1.0f, q = 0.0f;
        std::memcpy(block.data() + layout.v_scale_offset, &one, sizeof one);
        const std::byte* blocks = block.data();
        const std::uint32_t begin = 0, end = 1;
        float max = -std::numeric_limits<float>::infinity(), sum = 0, o[16] = {}, output = 0;
        std::vector<float> scratch(attend_scratch_floats(1, layout));
        const AttendState state{&max, &sum, o, 16};
        isa->kernels->attend({&layout, &blocks, 1, 0, 1, &q, 1, &begin, &end, 0, 1.0f, 0.0f,
                              nullptr, false, nullptr, state, scratch.data()});
        isa->kernels->finish_attention(state, 1, 1, &output, 1, nullptr);
        const float want = type == CacheType::fp8_e4m3 ? decode_e4m3(code) : decode_e5m2(code);
        INFO(isa->name << " code " << code);
        CHECK((output == want || (std::isnan(output) && std::isnan(want))));
      }
    }
  }
}

// As base has it, but 0 where x is subnormal, as products of bf16 pairs take such numbers.
float stored_bf16(float x) {
  if (std::fabs(x) < std::numeric_limits<float>::min()) return std::copysign(0.0f, x);
  return base::bf16_to_float(base::float_to_bf16(x));
}

TEST_CASE("f32, bf16 and f16 are kept as base converts them") {
  for (const IsaInfo* isa : supported_isas()) {
    auto x = hard_values(decode_f16, 0x7c00);
    for (float y : {65519.0f, 65520.0f, 1e6f, 1e38f, 1e-38f, 1e-45f, 3.4e38f,
                    std::numeric_limits<float>::infinity()})
      for (float sign : {1.0f, -1.0f}) x.push_back(sign * y);
    for (CacheType type : {CacheType::f32, CacheType::bf16, CacheType::f16}) {
      const auto y = through_cache(*isa->kernels, type, x);
      bool good = true;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const float want = type == CacheType::f32 ? x[i]
                           : type == CacheType::bf16
                               ? stored_bf16(x[i])
                               : base::f16_to_float(base::float_to_f16(x[i]));
        good = good && std::memcmp(&y[i], &want, sizeof(float)) == 0;
      }
      INFO(isa->name << " type " << static_cast<int>(type));
      CHECK(good);
    }
  }
}

TEST_CASE("scaled types: error within half a step of the row's largest value, at any magnitude") {
  for (const IsaInfo* isa : supported_isas()) {
    for (float size : {1e-25f, 1e-3f, 1.0f, 447.0f, 1e10f, 1e38f}) {
      for (std::size_t n : {1u, 16u, 63u, 64u, 80u, 129u}) {
        auto row = normal_values(n, static_cast<unsigned>(n));
        float top = 0;
        for (float x : row) top = std::max(top, std::abs(x));
        for (float& x : row) x *= size / top;
        top = size;
        for (CacheType type : {CacheType::int8, CacheType::fp8_e4m3, CacheType::fp8_e5m2}) {
          const auto y = through_cache(*isa->kernels, type, row);
          for (std::size_t i = 0; i < n; ++i) {
            const double error = std::abs(static_cast<double>(y[i]) - static_cast<double>(row[i]));
            const double x = std::abs(static_cast<double>(row[i]));
            const double step = type == CacheType::int8 ? static_cast<double>(top) / 127.0
                                : type == CacheType::fp8_e4m3
                                    ? std::max(x / 8, static_cast<double>(top) * 0x1p-17)
                                    : std::max(x / 4, static_cast<double>(top) * 0x1p-31);
            INFO(isa->name << " type " << static_cast<int>(type) << " size " << size << " n " << n);
            REQUIRE(std::isfinite(y[i]));
            REQUIRE(error <= 0.5 * step * (1 + 1e-5));
          }
        }
      }
    }
  }
}

TEST_CASE("int4: error within a step of the group's largest value, small on the average, at any magnitude") {
  for (const IsaInfo* isa : supported_isas()) {
    for (float size : {1e-3f, 1.0f, 447.0f, 1e4f}) {
      for (std::size_t n : {1u, 16u, 33u, 64u, 80u, 129u}) {
        auto row = normal_values(n, static_cast<unsigned>(n), size);
        const auto y = through_cache(*isa->kernels, CacheType::int4, row);  // V: not rotated
        double error = 0, power = 0;
        for (std::size_t first = 0; first < n; first += kCacheGroup) {
          float top = 0;
          const std::size_t end = std::min(n, first + kCacheGroup);
          for (std::size_t i = first; i < end; ++i) top = std::max(top, std::abs(row[i]));
          for (std::size_t i = first; i < end; ++i) {
            INFO(isa->name << " size " << size << " n " << n << " i " << i);
            CHECK(std::abs(y[i] - row[i]) <= 0.2f * top);
            error += std::pow(static_cast<double>(y[i] - row[i]), 2);
            power += std::pow(static_cast<double>(row[i]), 2);
          }
        }
        CHECK(error <= 0.01 * power);
      }
    }
  }
}

TEST_CASE("int4 keys: what is read is the key, whatever its width; outliers are spread over the head") {
  for (const IsaInfo* isa : supported_isas()) {
    for (std::size_t d : {1u, 7u, 16u, 48u, 64u, 80u, 96u, 128u, 256u, 576u}) {
      auto k = normal_values(d, static_cast<unsigned>(d));
      k[d / 2] *= 20;
      const CacheLayout layout = make_cache_layout(CacheType::int4, CacheType::f32, d, 1);
      std::vector<std::byte> block(layout.block_bytes + 64);
      std::vector<float> got(d), v(16, 1.0f);
      isa->kernels->store_kv(layout, k.data(), v.data(), block.data(), 19);
      reference_load_kv(layout, block.data(), 19, got.data(), v.data());
      double error = 0, power = 0;
      for (std::size_t i = 0; i < d; ++i) {
        error += std::pow(static_cast<double>(got[i] - k[i]), 2);
        power += std::pow(static_cast<double>(k[i]), 2);
      }
      INFO(isa->name << " d " << d << " relative error " << std::sqrt(error / power));
      CHECK(error <= 0.02 * power);
    }
  }
}

TEST_CASE("zero, tiny and non-finite rows of scaled types") {
  for (const IsaInfo* isa : supported_isas()) {
    for (CacheType type : {CacheType::int8, CacheType::fp8_e4m3, CacheType::fp8_e5m2, CacheType::int4}) {
      for (float value : {0.0f, -0.0f, 1e-40f, 1e-31f})
        for (float y : through_cache(*isa->kernels, type, std::vector<float>(20, value)))
          CHECK(y == 0.0f);
      for (float value :
           {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
            std::numeric_limits<float>::quiet_NaN()}) {
        std::vector<float> row(20, 1.0f);
        row[7] = value;  // the whole row is lost, and says so
        for (float y : through_cache(*isa->kernels, type, row)) CHECK(std::isnan(y));
      }
    }
  }
}

TEST_CASE("a token's bytes depend on that token alone, in any order, on every instruction set") {
  for (CacheType k_type : kCacheTypes) {
    for (CacheType v_type : kCacheTypes) {
      for (std::size_t d : {5u, 16u, 80u, 130u}) {
        const CacheLayout layout = make_cache_layout(k_type, v_type, d, d + 3);
        const auto k = normal_values(kBlockTokens * d, 1),
                   v = normal_values(kBlockTokens * (d + 3), 2);
        std::vector<std::byte> expected(layout.block_bytes, std::byte{0xff});
        for (std::size_t t = 0; t < kBlockTokens; ++t)
          all_isas().back().kernels->store_kv(layout, &k[t * d], &v[t * (d + 3)], expected.data(),
                                              t);
        // Nothing of the block is left unwritten: padding is zeros, not leftovers.
        std::vector<std::byte> other(layout.block_bytes, std::byte{0x00});
        for (const IsaInfo* isa : supported_isas()) {
          std::fill(other.begin(), other.end(), std::byte{0x00});
          for (std::size_t i = 0; i < kBlockTokens; ++i) {
            const std::size_t t = (i * 11 + 5) % kBlockTokens;
            isa->kernels->store_kv(layout, &k[t * d], &v[t * (d + 3)], other.data(), t);
          }
          INFO(isa->name << " types " << static_cast<int>(k_type) << " " << static_cast<int>(v_type)
                         << " d " << d);
          CHECK(other == expected);
        }
      }
    }
  }
}

TEST_CASE("block bytes follow the formula and every part starts on a line") {
  for (CacheType k_type : kCacheTypes) {
    for (CacheType v_type : kCacheTypes) {
      for (std::size_t d : {16u, 64u, 80u, 128u, 33u, 1u}) {
        const CacheLayout layout = make_cache_layout(k_type, v_type, d, d);
        const auto padded = [](std::size_t width, std::size_t to) { return (width + to - 1) / to * to; };
        const std::size_t k_width = padded(d, cache_lane_values(k_type));
        const std::size_t v_width = padded(d, v_type == CacheType::int4 ? 32 : 16);
        const auto scales = [&](CacheType type) {
          return padded(kBlockTokens * (cache_has_scales(type) ? 4 : type == CacheType::int4 ? 2 * ((d + 31) / 32) : 0),
                        64);
        };
        CHECK(layout.block_bytes == kBlockTokens * (cache_bytes(k_type, k_width) + cache_bytes(v_type, v_width)) +
                                        scales(k_type) + scales(v_type));
        for (std::size_t offset :
             {layout.v_offset, layout.k_scale_offset, layout.v_scale_offset, layout.block_bytes})
          CHECK(offset % 64 == 0);
      }
    }
  }
}

}  // namespace quern::kernels
