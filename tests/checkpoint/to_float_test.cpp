// Every foreign type gives the reference's float32 values, bit for bit.
#include <cmath>
#include <limits>
#include <map>

#include "base/mapped_file.hpp"
#include "checkpoint/dequant.hpp"
#include "checkpoint/gguf.hpp"
#include "checkpoint/safetensors.hpp"
#include "source_makers.hpp"

namespace {

using namespace std::literals;
using quern::base::MappedFile;
using quern::checkpoint::DType;
using quern::checkpoint::SourceTensor;

const std::filesystem::path kData =
    std::filesystem::path(QUERN_SOURCE_DIR) / "tests/data/gguf-types";

std::vector<float> floats_of(DType type, const std::string& bytes, std::size_t count) {
  std::vector<float> out(count);
  quern::checkpoint::to_float(type, quern::base::as_bytes(bytes), count, out.data());
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("every GGUF type equals the reference's values bit for bit", "[checkpoint]") {
  const MappedFile types(kData / "types.gguf"), values(kData / "types.expected.safetensors");
  const auto gguf = quern::checkpoint::parse_gguf(types.bytes(), "types.gguf");
  std::map<std::string, SourceTensor> expected;
  for (SourceTensor& tensor : quern::checkpoint::parse_safetensors(values.bytes(), "expected"))
    expected.emplace(tensor.name, tensor);
  REQUIRE(gguf.tensors.size() == 25);
  REQUIRE(expected.size() == gguf.tensors.size());
  for (const SourceTensor& tensor : gguf.tensors) {
    INFO(tensor.name);
    REQUIRE(tensor.shape == std::vector<std::uint64_t>{16, 512});
    CHECK(quern::checkpoint::dtype_name(tensor.type) == tensor.name);
    const SourceTensor& reference = expected.at(tensor.name);
    REQUIRE(reference.type == DType::f32);
    std::vector<float> out(tensor.values);
    quern::checkpoint::to_float(tensor, 0, tensor.values, out.data());
    std::size_t n_different = 0;
    for (std::size_t i = 0; i < out.size(); ++i)
      if (std::memcmp(&out[i], reference.bytes.data() + 4 * i, 4) != 0) ++n_different;
    CHECK(n_different == 0);
    // A part from the middle is the same part of the whole.
    const std::uint64_t block = quern::checkpoint::dtype_block_values(tensor.type);
    std::vector<float> part(block);
    quern::checkpoint::to_float(tensor, 2 * block, block, part.data());
    CHECK(std::memcmp(part.data(), out.data() + 2 * block, block * sizeof(float)) == 0);
  }
}

TEST_CASE("block types without a reference tensor", "[checkpoint]") {
  std::string codes;
  for (int i = 0; i < 256; ++i) codes += static_cast<char>(i - 128);
  const std::vector<float> q8_1 =
      floats_of(DType::gguf_q8_1, "\x00\x38\x00\x00"s + codes.substr(0, 32), 32);
  const std::vector<float> q8_k =
      floats_of(DType::gguf_q8_k, quern::test::raw(0.25F) + codes + std::string(32, '\0'), 256);
  for (int i = 0; i < 32; ++i)
    CHECK(q8_1[static_cast<std::size_t>(i)] == 0.5F * static_cast<float>(i - 128));
  for (int i = 0; i < 256; ++i)
    CHECK(q8_k[static_cast<std::size_t>(i)] == 0.25F * static_cast<float>(i - 128));
}

TEST_CASE("all 65,536 halves widen exactly", "[checkpoint]") {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float got = quern::checkpoint::widen_f16(static_cast<std::uint16_t>(bits));
    const float sign = (bits & 0x8000u) != 0 ? -1.0F : 1.0F;
    const int exponent = static_cast<int>(bits >> 10 & 31u);
    const auto mantissa = static_cast<float>(bits & 1023u);
    if (exponent == 31) {
      if ((bits & 1023u) != 0 ? !std::isnan(got)
                              : got != sign * std::numeric_limits<float>::infinity())
        FAIL("half " << bits);
      continue;
    }
    const float want =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024.0F, exponent - 25);
    if (got != want * sign || std::signbit(got) != std::signbit(sign)) FAIL("half " << bits);
  }
}

TEST_CASE("plain types convert their value from any address", "[checkpoint]") {
  using quern::test::raw;
  const auto one = [](DType type, const std::string& bytes) {
    const std::string shifted = "x" + bytes;  // odd address
    float out = 0;
    quern::checkpoint::to_float(type, quern::base::as_bytes(shifted).subspan(1), 1, &out);
    return out;
  };
  CHECK(one(DType::f32, raw(1.25F)) == 1.25F);
  CHECK(one(DType::f64, raw(0.1)) == 0.1F);
  CHECK(one(DType::f64, raw(1e300)) == std::numeric_limits<float>::infinity());
  CHECK(one(DType::bf16, raw(std::uint16_t{0xC020})) == -2.5F);
  CHECK(one(DType::f8_e4m3, "\x7E"s) == 448.0F);
  CHECK(std::isnan(one(DType::f8_e4m3, "\x7F"s)));
  CHECK(one(DType::f8_e4m3, "\x01"s) == 0x1p-9F);
  CHECK(one(DType::f8_e5m2, "\x7B"s) == 57344.0F);
  CHECK(one(DType::f8_e5m2, "\xFC"s) == -std::numeric_limits<float>::infinity());
  CHECK(one(DType::i8, raw(std::int8_t{-128})) == -128.0F);
  CHECK(one(DType::u8, raw(std::uint8_t{255})) == 255.0F);
  CHECK(one(DType::i16, raw(std::int16_t{-32768})) == -32768.0F);
  CHECK(one(DType::u16, raw(std::uint16_t{65535})) == 65535.0F);
  CHECK(one(DType::i32, raw(std::int32_t{-16777217})) == -16777216.0F);
  CHECK(one(DType::u32, raw(std::uint32_t{4294967295u})) == 4294967296.0F);
  CHECK(one(DType::i64, raw(std::int64_t{-5'000'000'000})) == -5e9F);
  CHECK(one(DType::u64, raw(~std::uint64_t{0})) == 0x1p64F);
  CHECK(one(DType::boolean, raw(std::uint8_t{1})) == 1.0F);
  CHECK(one(DType::boolean, raw(std::uint8_t{0})) == 0.0F);
}
