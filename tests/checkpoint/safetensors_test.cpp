// One safetensors file: what is read, and every kind of damage that must be named.
#include "checkpoint/safetensors.hpp"

#include <sys/resource.h>

#include <chrono>

#include "source_makers.hpp"

namespace {

using namespace std::literals;
using quern::base::as_bytes;
using quern::base::cat;
using quern::checkpoint::DType;
using quern::checkpoint::parse_safetensors;
using quern::checkpoint::SourceTensor;
using quern::test::mentions;
using quern::test::raw;
using quern::test::rejection;
using quern::test::safetensors_file;

std::string refused(const std::string& file) {
  return rejection([&] { parse_safetensors(as_bytes(file), "m.safetensors"); });
}

// An entry of F32 type.
std::string entry(std::string_view name, std::string_view shape, std::string_view offsets) {
  return cat("\"", name, R"(":{"dtype":"F32","shape":)", shape, R"(,"data_offsets":)", offsets,
             "}");
}

std::string refused_header(const std::string& header, std::size_t data_bytes = 16) {
  return refused(safetensors_file(header, std::string(data_bytes, '\0')));
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace

TEST_CASE("safetensors: types, shapes and order of the bytes", "[checkpoint]") {
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("b":{"data_offsets":[24,28],"dtype":"F16","shape":[2,1]},)"
                             R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                             R"("empty":{"dtype":"I64","shape":[0,7],"data_offsets":[28,28]},)"
                             R"("scalar":{"dtype":"BOOL","shape":[],"data_offsets":[28,29]}}    )";
  const std::string file = safetensors_file(header, std::string(29, '\1'));
  const std::vector<SourceTensor> tensors = parse_safetensors(as_bytes(file), "m");
  REQUIRE(tensors.size() == 4);
  CHECK(tensors[0].name == "a");
  CHECK(tensors[0].shape == std::vector<std::uint64_t>{2, 3});
  CHECK(tensors[0].values == 6);
  CHECK(tensors[0].bytes.data() == as_bytes(file).data() + 8 + header.size());
  CHECK(tensors[1].name == "b");
  CHECK(tensors[1].type == DType::f16);
  CHECK(tensors[2].name == "empty");
  CHECK(tensors[2].values == 0);
  CHECK(tensors[2].bytes.empty());
  CHECK(tensors[3].values == 1);
}

TEST_CASE("safetensors: every dtype by its size", "[checkpoint]") {
  const std::pair<std::string, int> types[] = {
      {"F32", 4},     {"F16", 2}, {"BF16", 2}, {"F64", 8}, {"F8_E4M3", 1},
      {"F8_E5M2", 1}, {"I8", 1},  {"U8", 1},   {"I16", 2}, {"U16", 2},
      {"I32", 4},     {"U32", 4}, {"I64", 8},  {"U64", 8}, {"BOOL", 1}};
  for (const auto& [name, size] : types) {
    const std::string header =
        cat(R"({"t":{"dtype":")", name, R"(","shape":[3],"data_offsets":[0,)", 3 * size, "]}}");
    const std::string file =
        safetensors_file(header, std::string(static_cast<std::size_t>(3 * size), '\0'));
    const auto tensors = parse_safetensors(as_bytes(file), "m");
    REQUIRE(tensors.size() == 1);
    CHECK(quern::checkpoint::dtype_name(tensors[0].type) == name);
  }
}

TEST_CASE("safetensors: header length against the file", "[checkpoint]") {
  const std::string good = quern::test::vectors_file({"a"});
  for (std::size_t length = 0; length < 8; ++length)
    mentions(refused(good.substr(0, length)), "truncated");
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{good.size() - 7},
        std::uint64_t{100'000'001}, std::uint64_t{1} << 63, ~std::uint64_t{0}})
    mentions(refused(raw(length) + good.substr(8)), "header length");
  // Longer than the format allows although the file is that long.
  std::string large(100'000'001 + 16, ' ');
  large.replace(0, 9, raw(std::uint64_t{100'000'001}) + "{");
  mentions(refused(large), "header length");
}

TEST_CASE("safetensors: header text", "[checkpoint]") {
  mentions(refused_header(" {}"), "m.safetensors:8: header does not start");
  mentions(refused_header("[]"), "header does not start");
  mentions(refused_header("\xEF\xBB\xBF{}"), "header does not start");
  mentions(refused_header("{\"\xFF\":{}}"), "not valid JSON");
  mentions(refused_header("{} x"), "m.safetensors:1");
  mentions(refused_header("{}{}"), "not valid JSON");
  mentions(refused_header("{\"a\""), "not valid JSON");
  mentions(refused_header("{}\0junk"s), "m.safetensors:10: NUL");
  mentions(refused_header("{// note\n}"), "not valid JSON");
  mentions(refused_header(R"({"a":1})"), "wrong kind of value");
  mentions(refused_header(R"({"a":{"dtype":"F32","shape":[4]}})"), "\"data_offsets\" is missing");
  mentions(refused_header(R"({"a":{}})"), "\"dtype\" is missing");
  mentions(refused_header(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16],"more":1}})"),
           "unknown key");
  mentions(refused_header(R"({"__metadata__":{"a":1}})"), "expected a string");
  mentions(refused_header(R"({"__metadata__":"a"})"), "wrong kind of value");
  mentions(refused_header(cat("{", entry("", "[4]", "[0,16]"), "}")), "name is empty");
}

TEST_CASE("safetensors: nesting is refused at once at any depth", "[checkpoint]") {
  for (const std::size_t depth : {2u, 129u, 100'000u, 10'000'000u}) {
    CHECK_FALSE(refused_header(R"({"a":)" + std::string(depth, '[')).empty());
    CHECK_FALSE(refused_header(R"({"a":{"dtype":)" + std::string(depth, '[')).empty());
    CHECK_FALSE(refused_header(R"({"a":{"shape":)" + std::string(depth, '[')).empty());
    std::string objects;
    for (std::size_t i = 0; i < std::min<std::size_t>(depth, 200'000); ++i) objects += R"({"a":)";
    CHECK_FALSE(refused_header(objects).empty());
  }
}

TEST_CASE("safetensors: a key twice in one object", "[checkpoint]") {
  const std::string a = entry("a", "[2]", "[0,8]");
  mentions(refused_header("{" + a + "," + entry("a", "[2]", "[8,16]") + "}"),
           "duplicate key \"a\"");
  mentions(
      refused_header(R"({"a":{"dtype":"F32","dtype":"I32","shape":[4],"data_offsets":[0,16]}})"),
      "duplicate key \"dtype\"");
  mentions(refused_header(R"({"a":{"dtype":"F32","shape":[4],"shape":[4],"data_offsets":[0,16]}})"),
           "duplicate key \"shape\"");
  mentions(
      refused_header(R"({"__metadata__":{"k":"1","k":"2"},)" + entry("a", "[4]", "[0,16]") + "}"),
      "duplicate key \"k\"");
  mentions(refused_header(R"({"__metadata__":{},"__metadata__":{},)" + entry("a", "[4]", "[0,16]") +
                          "}"),
           "duplicate key \"__metadata__\"");
}

TEST_CASE("safetensors: offsets must cover the data exactly", "[checkpoint]") {
  const auto two = [](std::string_view first, std::string_view second) {
    return refused_header("{" + entry("a", "[2]", first) + "," + entry("b", "[1]", second) + "}",
                          16);
  };
  mentions(two("[0,8]", "[12,16]"), "hole");
  mentions(two("[4,12]", "[12,16]"), "hole");
  mentions(two("[8,16]", "[0,4]"), "hole");
  mentions(two("[0,8]", "[4,8]"), "overlaps");
  mentions(two("[0,8]", "[0,4]"), "overlaps");
  mentions(two("[0,8]", "[8,12]"), "bytes after the last tensor");
  mentions(two("[0,8]", "[16,20]"), "outside the file");
  mentions(two("[8,0]", "[8,12]"), "outside the file");
  mentions(two("[0,8]", "[18446744073709551612,18446744073709551615]"), "outside the file");
  mentions(refused_header("{}", 1), "bytes after the last tensor");
}

TEST_CASE("safetensors: shape against type and range", "[checkpoint]") {
  const auto shaped = [](std::string_view shape) {
    return refused_header("{" + entry("a", shape, "[0,16]") + "}", 16);
  };
  CHECK(shaped("[4]").empty());
  CHECK(shaped("[2,2,1]").empty());
  for (const std::string_view wrong : {"[5]", "[3]", "[]", "[0]", "[4,0]"})
    mentions(shaped(wrong), "disagree");
  // Products that are 4 modulo 2^64, and one that only overflows with the type's size.
  mentions(shaped("[4194305,4194305,211106198978564]"), "overflows");
  mentions(shaped("[4611686018427387905,4]"), "overflows");
  mentions(shaped("[4611686018427387908]"), "overflows");
  mentions(shaped("[0,18446744073709551615,18446744073709551615]"), "disagree");
  for (const std::string_view wrong :
       {"[-4]", "[4.0]", "[1.5]", "[\"4\"]", "[null]", "[true]", "\"4\"", "4", "{}"})
    mentions(shaped(wrong), "wrong kind of value");
  mentions(shaped("[1e400]"), "not valid JSON");
  mentions(shaped("[18446744073709551616]"), "wrong kind of value");
  mentions(shaped("[1,1,1,1,1,1,1,1,4]"), "too many numbers");
  const auto ranged = [](std::string_view offsets) {
    return refused_header("{" + entry("a", "[4]", offsets) + "}", 16);
  };
  for (const std::string_view wrong :
       {"[]", "[0]", "[0,16,16]", "[-1,16]", "[0,16.0]", "\"\"", "0"})
    CHECK_FALSE(ranged(wrong).empty());
}

TEST_CASE("safetensors: unknown types are named", "[checkpoint]") {
  for (const std::string type : {"F4", "F6_E2M3", "I4", "C64", "f32", "", "F8_E9M0"})
    mentions(
        refused_header(cat(R"({"a":{"dtype":")", type, R"(","shape":[4],"data_offsets":[0,16]}})")),
        cat("unknown dtype (got \"", type, "\""));
  mentions(refused_header(R"({"a":{"dtype":4,"shape":[4],"data_offsets":[0,16]}})"), "a string");
}

TEST_CASE("safetensors: other files under its name", "[checkpoint]") {
  mentions(refused("PK\x03\x04\x14\0\0\0\x08\0 archive/data.pkl"s), "pickle is not read");
  mentions(refused("\x80\x02}q\0X\x05\0\0\0model"s), "pickle is not read");
  mentions(refused("GGUF\x03\0\0\0\1\0\0\0\0\0\0\0"s), "GGUF");
  // A header of 640 bytes begins with a pickle's first two bytes and is none.
  std::string header = "{" + entry("a", "[4]", "[0,16]") + "}";
  header.resize(640, ' ');
  CHECK(refused_header(header).empty());
}

TEST_CASE("safetensors: hostile text in names stays out of error lines", "[checkpoint]") {
  const std::string line =
      refused_header("{" + entry("a\\u001b[2Jb\\u202e", "[5]", "[0,16]") + "}");
  mentions(line, "a\\x1b[2Jb");
  const std::string long_name(100'000, 'n');
  mentions(refused_header("{" + entry(long_name, "[5]", "[0,16]") + "}"), "nnn...");
}

TEST_CASE("safetensors: 100,000 entries in a header of 90 MB", "[checkpoint]") {
  std::string header = "{";
  const std::string filler(840, 'x');
  for (std::size_t i = 0; i < 100'000; ++i)
    header += cat(i == 0 ? "" : ",",
                  entry(cat("t", i, filler), "[1]", cat("[", 4 * i, ",", 4 * i + 4, "]")));
  header += "}";
  REQUIRE(header.size() > 90'000'000);
  REQUIRE(header.size() < 100'000'000);
  const std::string file = safetensors_file(header, std::string(400'000, '\0'));
  header = {};
  const auto start = std::chrono::steady_clock::now();
  const std::vector<SourceTensor> tensors = parse_safetensors(as_bytes(file), "m");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  REQUIRE(tensors.size() == 100'000);
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  INFO(seconds.count() << " s, peak " << usage.ru_maxrss / 1024 << " MiB");
  if (kSanitized) return;
  CHECK(seconds.count() < 5.0);
  CHECK(usage.ru_maxrss < 1024 * 1024);
  std::puts(cat("100,000 entries: ", seconds.count(), " s, peak ", usage.ru_maxrss / 1024, " MiB")
                .c_str());
}
