// One GGUF file: metadata, tensors, and every kind of damage that must be refused at once.
#include "checkpoint/gguf.hpp"

#include <chrono>

#include "checkpoint/checkpoint.hpp"
#include "source_makers.hpp"

namespace {

using namespace std::literals;
using quern::base::as_bytes;
using quern::base::cat;
using quern::checkpoint::DType;
using quern::checkpoint::GgufFile;
using quern::checkpoint::parse_gguf;
using quern::test::gguf_string;
using quern::test::GgufMaker;
using quern::test::mentions;
using quern::test::raw;
using quern::test::rejection;
using namespace quern::test;  // NOLINT: the value type numbers

// Refused at once (50 ms on an idle machine), whatever the counts in the file say.
std::string refused(const std::string& file) {
  const auto start = std::chrono::steady_clock::now();
  std::string line = rejection([&] { parse_gguf(as_bytes(file), "m.gguf"); });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(seconds.count() < (line.empty() ? 5.0 : 0.5));
  return line;
}
std::string refused(const GgufMaker& maker) {
  return refused(maker.bytes());
}

constexpr std::uint64_t kHuge[] = {std::uint64_t{1} << 31, (std::uint64_t{1} << 32) - 1,
                                   std::uint64_t{1} << 32, std::uint64_t{1} << 61,
                                   std::uint64_t{1} << 63, ~std::uint64_t{0}};

}  // namespace

TEST_CASE("GGUF: metadata of every type", "[checkpoint]") {
  GgufMaker maker;
  maker.value("a.u8", kU8, raw(std::uint8_t{200})).value("a.i8", kI8, raw(std::int8_t{-3}));
  maker.value("a.u16", kU16, raw(std::uint16_t{65535})).value("a.i16", kI16, raw(std::int16_t{-2}));
  maker.u32("a.u32", 7)
      .value("a.i32", kI32, raw(std::int32_t{-7}))
      .value("a.f32", kF32, raw(1e-5F));
  maker.value("a.bool", kBool, "\1").text("a.text", "caf\xC3\xA9 \xFF\n");
  maker.value("a.u64", kU64, raw(~std::uint64_t{0})).value("a.i64", kI64, raw(INT64_MIN));
  maker.value("a.f64", kF64, raw(0.1))
      .value("a.whole", kF32, raw(100000.0F))
      .value("a.nan", kF32, raw(NAN));
  maker.array("a.strings", kString, 2, gguf_string("x") + gguf_string(""));
  maker.array("a.floats", kF32, 2, raw(0.5F) + raw(-1.0F)).array("a.flags", kBool, 2, "\0\1"s);
  maker.array("a.numbers", kI16, 2, raw(std::int16_t{-5}) + raw(std::int16_t{5}))
      .array("a.none", kU8, 0, "");
  maker.array("a.long", kU8, 1025, std::string(1025, '\1')).vector("w");
  const std::string bytes = maker.bytes();
  const GgufFile file = parse_gguf(as_bytes(bytes), "m.gguf");
  CHECK(quern::checkpoint::gguf_metadata_json(file) ==
        "{\"a.u8\": 200,\n \"a.i8\": -3,\n \"a.u16\": 65535,\n \"a.i16\": -2,\n \"a.u32\": 7,\n "
        "\"a.i32\": -7,\n "
        "\"a.f32\": 1e-05,\n \"a.bool\": true,\n \"a.text\": \"caf\xC3\xA9 \xEF\xBF\xBD\\n\",\n "
        "\"a.u64\": 18446744073709551615,\n \"a.i64\": -9223372036854775808,\n \"a.f64\": 0.1,\n "
        "\"a.whole\": 100000.0,\n \"a.nan\": null,\n \"a.strings\": [\"x\", \"\"],\n \"a.floats\": "
        "[0.5, -1.0],\n "
        "\"a.flags\": [false, true],\n \"a.numbers\": [-5, 5],\n \"a.none\": []}\n");
  CHECK(file.strings("a.strings", "m") == std::vector<std::string_view>{"x", ""});
  CHECK(file.strings("a.strings", "m")[0].data() > bytes.data());  // in the file's own bytes
  CHECK(file.floats("a.floats", "m") == std::vector<float>{0.5F, -1.0F});
  CHECK(file.integers("a.numbers", "m") == std::vector<std::int64_t>{-5, 5});
  CHECK(file.integers("a.long", "m").size() == 1025);
  mentions(rejection([&] { file.floats("a.long", "m.gguf"); }),
           "m.gguf: a.long: wrong element type (got u8");
  mentions(rejection([&] { file.integers("a.floats", "m.gguf"); }), "wrong element type (got f32");
  mentions(rejection([&] { file.strings("a.flags", "m.gguf"); }), "wrong element type (got bool");
  mentions(rejection([&] { file.strings("a.text", "m.gguf"); }), "wrong type (got string");
  mentions(rejection([&] { file.strings("a.absent", "m.gguf"); }), "key is missing");
}

TEST_CASE("GGUF: tensors in the order of their bytes, shapes outermost first", "[checkpoint]") {
  GgufMaker maker;
  maker.info("second", {32, 3}, 2, 64).info("first", {5, 2}, 0, 0).info("empty", {4, 0}, 0, 128);
  maker.info("scalar", {}, 0, 128);
  maker.data = std::string(160, '\1');
  const std::string bytes = maker.bytes();
  const GgufFile file = parse_gguf(as_bytes(bytes), "m.gguf");
  REQUIRE(file.tensors.size() == 4);
  CHECK(file.tensors[0].name == "first");
  CHECK(file.tensors[0].shape == std::vector<std::uint64_t>{2, 5});
  CHECK(file.tensors[0].bytes.size() == 40);
  CHECK(file.tensors[1].type == DType::gguf_q4_0);
  CHECK(file.tensors[1].shape == std::vector<std::uint64_t>{3, 32});
  CHECK(file.tensors[1].bytes.size() == 54);
  CHECK(file.tensors[2].values == 0);
  CHECK(file.tensors[3].values == 1);
}

TEST_CASE("GGUF: files that must be read", "[checkpoint]") {
  CHECK(refused(GgufMaker{}).empty());                        // no keys, no tensors
  CHECK(refused(GgufMaker{}.bytes().substr(0, 24)).empty());  // not even padding
  CHECK(refused(GgufMaker{}.u32("a", 1)).empty());
  CHECK(refused(GgufMaker{}.vector("a").vector("b", 7)).empty());
  for (const std::uint32_t version : {2u, 3u}) {
    GgufMaker maker;
    maker.version = version;
    CHECK(refused(maker.vector("a")).empty());
  }
  for (const std::uint32_t alignment : {1u, 8u, 64u, 4096u}) {
    GgufMaker maker;
    maker.alignment = alignment;
    CHECK(refused(maker.u32("general.alignment", alignment).vector("a", 3).vector("b", 5)).empty());
  }
  const std::string longer = GgufMaker{}.vector("a").bytes() + "tail";
  CHECK(parse_gguf(as_bytes(longer), "m").trailing_bytes == 4);
}

TEST_CASE("GGUF: header", "[checkpoint]") {
  GgufMaker maker;
  maker.magic = "GGML";
  mentions(refused(maker), "not a GGUF file");
  maker.magic = "FUGG";
  mentions(refused(maker), "big-endian");
  maker.magic = "GGUF";
  for (const std::uint32_t version : {0u, 4u, 65535u, 0xFFFFFFFFu}) {
    maker.version = version;
    mentions(refused(maker), "unknown GGUF version");
  }
  maker.version = 1;
  mentions(refused(maker), "too old");
  maker.version = 3u << 24;
  mentions(refused(maker), "big-endian");
  for (const std::uint64_t count : kHuge) {
    GgufMaker tensors, keys;
    tensors.n_tensors = count;
    mentions(refused(tensors), "more tensors than the file can hold");
    mentions(refused(tensors.bytes().substr(0, 24)), "more tensors");
    keys.n_metadata = count;
    mentions(refused(keys), "more metadata than the file can hold");
    mentions(refused(keys.bytes().substr(0, 24)), "more metadata");
  }
}

TEST_CASE("GGUF: keys", "[checkpoint]") {
  mentions(refused(GgufMaker{}.u32("", 1)), "key is empty");
  mentions(refused(GgufMaker{}.u32("a", 1).u32("b", 2).u32("a", 1)), "duplicate key \"a\"");
  mentions(refused(GgufMaker{}.u32(std::string(65'536, 'k'), 1)), "too long");
  CHECK(refused(GgufMaker{}.u32(std::string(65'535, 'k'), 1)).empty());
  mentions(refused(GgufMaker{}.u32("k\xFF", 1)), "not printable UTF-8: \"k\\xff\"");
  mentions(refused(GgufMaker{}.u32("k\x1b[2J", 1)), "k\\x1b[2J");
  for (const std::uint64_t length : kHuge) {
    GgufMaker maker;
    maker.n_metadata = 1;
    maker.metadata = raw(length) + std::string(64, 'k');
    mentions(refused(maker), "truncated in metadata key");
  }
}

TEST_CASE("GGUF: values", "[checkpoint]") {
  for (const std::uint32_t type : {13u, 255u, 0x80000000u, 0xFFFFFFFFu}) {
    mentions(refused(GgufMaker{}.value("a", type, std::string(16, '\0'))), "unknown value type");
    mentions(refused(GgufMaker{}.array("a", type, 1, std::string(16, '\0'))), "unknown value type");
  }
  for (const std::uint64_t length : kHuge) {
    mentions(refused(GgufMaker{}.value("a", kString, raw(length) + "xx")),
             "truncated in metadata string");
    mentions(refused(GgufMaker{}.array("a", kString, length, "")), "truncated in array");
    mentions(refused(GgufMaker{}.array("a", kU8, length, "")), "truncated in array");
    mentions(refused(GgufMaker{}.array("a", kString, 1, raw(length))), "truncated in array string");
    for (const std::uint32_t wide : {kU64, kF32})
      CHECK_FALSE(refused(GgufMaker{}.array("a", wide, length, std::string(8, '\0'))).empty());
  }
  // 2^61 values of 8 bytes are 0 modulo 2^64.
  mentions(refused(GgufMaker{}.array("a", kU64, std::uint64_t{1} << 61, "")), "overflows");
  mentions(refused(GgufMaker{}.array("a", kArray, 1, raw(kU8) + raw(std::uint64_t{0}))),
           "arrays of arrays");
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += raw(kArray) + raw(std::uint64_t{1});
  mentions(refused(GgufMaker{}.value("a", kArray, deep)), "arrays of arrays");
}

TEST_CASE("GGUF: alignment", "[checkpoint]") {
  for (const std::uint32_t alignment : {0u, 3u, 13u, 33u, 131'072u, 0x80000000u, 0xFFFFFFFFu})
    mentions(refused(GgufMaker{}.u32("general.alignment", alignment).vector("a")),
             "wrong alignment");
  mentions(refused(GgufMaker{}.value("general.alignment", kU64, raw(std::uint64_t{1} << 63))),
           "wrong type (got u64");
  mentions(refused(GgufMaker{}.value("general.alignment", kI32, raw(std::int32_t{32}))),
           "wrong type (got i32");
  mentions(refused(GgufMaker{}.text("general.alignment", "32")), "wrong type (got string");
  // Offsets laid out for another alignment than the file states.
  GgufMaker maker;
  maker.alignment = 8;
  maker.vector("a", 2).vector("b", 2).data += std::string(64, '\0');
  mentions(refused(maker), "not aligned");
}

TEST_CASE("GGUF: shapes and types", "[checkpoint]") {
  const auto shaped = [](const std::vector<std::uint64_t>& dims, std::uint32_t type) {
    GgufMaker maker;
    maker.data = std::string(64, '\0');
    return refused(maker.info("t", dims, type, 0));
  };
  mentions(shaped({1, 1, 1, 1, 1}, 0), "too many dimensions");
  mentions(shaped({~std::uint64_t{0}}, 0), "too large");
  mentions(shaped({~std::uint64_t{0}, ~std::uint64_t{0}}, 24), "too large");
  mentions(shaped({std::uint64_t{1} << 33, std::uint64_t{1} << 33}, 0), "overflows");
  mentions(shaped({(std::uint64_t{1} << 62) + 4}, 0), "overflows");
  mentions(shaped({4194305, 4194305, 211106198978564}, 0), "overflows");
  mentions(shaped({INT64_MAX}, 24), "truncated");  // its padded size still fits in 64 bits
  mentions(shaped({31}, 2), "not a multiple of the block of Q4_0");
  mentions(shaped({32, 8}, 12), "not a multiple of the block of Q4_K");
  for (const auto& [number, name] :
       std::vector<std::pair<std::uint32_t, std::string>>{{4, "Q4_2 (removed)"},
                                                          {5, "Q4_3 (removed)"},
                                                          {31, "Q4_0_4_4 (removed)"},
                                                          {38, "IQ4_NL_8_8 (removed)"},
                                                          {40, "NVFP4"},
                                                          {42, "number 42"},
                                                          {1002, "number 1002"},
                                                          {0xFFFFFFFFu, "number 4294967295"}})
    mentions(shaped({256}, number), cat("not supported (got ", name));
  GgufMaker huge_rank;
  huge_rank.n_tensors = 1;
  huge_rank.infos = gguf_string("t") + raw(0xFFFFFFFFu) + std::string(64, '\0');
  mentions(refused(huge_rank), "too many dimensions");
}

TEST_CASE("GGUF: tensor names", "[checkpoint]") {
  GgufMaker maker;
  mentions(refused(GgufMaker{}.vector("a").vector("b").vector("a")), "duplicate tensor \"a\"");
  mentions(refused(GgufMaker{}.vector("")), "name is empty");
  mentions(refused(GgufMaker{}.vector(std::string(65, 'n'))), "too long");
  CHECK(refused(GgufMaker{}.vector(std::string(64, 'n'))).empty());
  mentions(refused(GgufMaker{}.vector("a\xC0\x80")), "not printable UTF-8");
  for (const std::uint64_t length : kHuge) {
    GgufMaker long_name;
    long_name.n_tensors = 1;
    long_name.infos = raw(length) + std::string(64, 'n');
    mentions(refused(long_name), "too long");
  }
}

TEST_CASE("GGUF: tensor data against the file", "[checkpoint]") {
  const auto two = [](std::uint64_t first, std::uint64_t second) {
    GgufMaker maker;
    maker.data = std::string(64, '\0');
    return refused(maker.info("a", {8}, 0, first).info("b", {8}, 0, second));
  };
  CHECK(two(0, 32).empty());
  CHECK(two(32, 0).empty());
  mentions(two(0, 0), "overlaps");
  mentions(two(0, 16), "not aligned");
  mentions(two(0, 64), "hole");
  mentions(two(32, 64), "hole");
  mentions(two(0, ~std::uint64_t{0}), "not aligned");
  mentions(two(0, ~std::uint64_t{31}), "hole");
  // Sizes whose padded sum wraps.
  GgufMaker wrap;
  wrap.data = std::string(64, '\0');
  const std::uint64_t most = 0x7FFFFFFFFFFFFFC0;
  mentions(refused(wrap.info("a", {most}, 24, 0).info("b", {most}, 24, most)), "truncated");
  for (std::size_t cut = 1; cut <= 64; ++cut) {
    const std::string whole = GgufMaker{}.vector("a").vector("b").bytes();
    mentions(refused(whole.substr(0, whole.size() - cut)), "truncated");
  }
}

TEST_CASE("GGUF: every prefix of a file is refused", "[checkpoint]") {
  GgufMaker maker;
  maker.text("general.architecture", "x")
      .array("t.tokens", kString, 2, gguf_string("a") + gguf_string("b"));
  const std::string whole = maker.vector("a").vector("b", 3).bytes();
  REQUIRE(refused(whole).empty());
  for (std::size_t length = 0; length < whole.size(); ++length)
    CHECK_FALSE(refused(whole.substr(0, length)).empty());
}

TEST_CASE("GGUF: as a checkpoint", "[checkpoint]") {
  const TemporaryDirectory dir;
  GgufMaker maker;
  dir.write(
      "m.gguf",
      maker.text("general.architecture", "x").u32("x.block_count", 2).vector("a").bytes() + "tail");
  const auto source = quern::checkpoint::open_checkpoint(dir.path() / "m.gguf");
  CHECK(source->kind() == quern::checkpoint::SourceKind::gguf);
  CHECK(source->config_json() == "{\"general.architecture\": \"x\",\n \"x.block_count\": 2}\n");
  CHECK(source->side_file("tokenizer.json").empty());
  REQUIRE(source->find("a") != nullptr);
  CHECK(source->find("a")->values == 8);
  REQUIRE(quern::checkpoint::gguf_of(*source) != nullptr);
  CHECK(quern::checkpoint::gguf_of(*source)->find("x.block_count") != nullptr);
  REQUIRE(source->notices().size() == 1);
  mentions(source->notices()[0], "4 bytes after the last tensor");
  source->check_unchanged();
  std::filesystem::resize_file(dir.path() / "m.gguf", 100);
  mentions(rejection([&] { source->check_unchanged(); }), "source changed during conversion");
}
