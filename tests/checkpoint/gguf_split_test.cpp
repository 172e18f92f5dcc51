// GGUF split over files: parts are found by the first one's own name and must belong together.
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/gguf.hpp"
#include "source_makers.hpp"

namespace {

namespace fs = std::filesystem;
using quern::base::cat;
using quern::checkpoint::open_checkpoint;
using quern::test::GgufMaker;
using quern::test::mentions;
using quern::test::raw;
using quern::test::rejection;
using quern::test::TemporaryDirectory;

GgufMaker part(std::uint16_t number, std::uint16_t count, std::int32_t n_tensors = 3) {
  GgufMaker maker;
  maker.value("split.no", quern::test::kU16, raw(number))
      .value("split.count", quern::test::kU16, raw(count));
  maker.value("split.tensors.count", quern::test::kI32, raw(n_tensors));
  return maker;
}

constexpr const char* kFirst = "m-00001-of-00003.gguf";
constexpr const char* kSecond = "m-00002-of-00003.gguf";
constexpr const char* kThird = "m-00003-of-00003.gguf";

// A right split of three parts with the tensors a, b and c.
void write_split(const TemporaryDirectory& dir, const std::string& under = "") {
  dir.write(under + kFirst, part(0, 3).text("general.architecture", "x").vector("a").bytes());
  dir.write(under + kSecond, part(1, 3).vector("b").bytes());
  dir.write(under + kThird, part(2, 3).vector("c", 16).bytes());
}

std::string refused(const fs::path& path) {
  return rejection([&] { open_checkpoint(path); });
}

}  // namespace

TEST_CASE("split GGUF: all parts are one checkpoint", "[checkpoint]") {
  const TemporaryDirectory dir;
  write_split(dir);
  const auto source = open_checkpoint(dir.path() / kFirst);
  REQUIRE(source->tensors().size() == 3);
  CHECK(source->find("a")->file == 0);
  CHECK(source->find("c")->file == 2);
  float values[16] = {};
  quern::checkpoint::to_float(*source->find("c"), 0, 16, values);
  CHECK(values[15] == 15.0F);
  CHECK(quern::checkpoint::gguf_of(*source)->find("general.architecture") != nullptr);
  source->check_unchanged();
  dir.write("new", part(2, 3).vector("c", 16).bytes());
  fs::rename(dir.path() / "new", dir.path() / kThird);
  mentions(rejection([&] { source->check_unchanged(); }), kThird);
}

TEST_CASE("split GGUF: the first part is wanted", "[checkpoint]") {
  const TemporaryDirectory dir;
  write_split(dir);
  mentions(refused(dir.path() / kSecond),
           "this is part 2 of 3 of a split GGUF; give the first part");
  fs::rename(dir.path() / kFirst, dir.path() / "other.gguf");
  mentions(refused(dir.path() / "other.gguf"), "name does not fit");
}

TEST_CASE("split GGUF: parts that do not belong together", "[checkpoint]") {
  const TemporaryDirectory dir;
  write_split(dir);
  dir.write(kThird, part(1, 3).vector("c").bytes());
  mentions(refused(dir.path() / kFirst),
           cat(kThird, ": split.no: wrong value (got 1, expected 2)"));
  dir.write(kThird, part(2, 4).vector("c").bytes());
  mentions(refused(dir.path() / kFirst), "split.count: wrong value (got 4, expected 3)");
  dir.write(kThird, GgufMaker{}.vector("c").bytes());
  mentions(refused(dir.path() / kFirst), "split.count: wrong value (got none");
  dir.write(kThird, part(2, 3).vector("a").bytes());
  mentions(refused(dir.path() / kFirst), "\"a\" lies in two parts");
  dir.write(kThird, part(2, 3).vector("c").vector("d").bytes());
  mentions(refused(dir.path() / kFirst), "split.tensors.count names (got 4, expected 3)");
  dir.write(kThird, "GGUF");
  mentions(refused(dir.path() / kFirst), cat(kThird, ":4: truncated"));
  fs::remove(dir.path() / kThird);
  mentions(refused(dir.path() / kFirst), cat(kThird, ": part of the split is missing"));
}

TEST_CASE("split GGUF: counts out of range", "[checkpoint]") {
  const TemporaryDirectory dir;
  const auto with_count = [&](std::uint32_t type, const std::string& bytes) {
    GgufMaker maker;
    maker.value("split.no", quern::test::kU16, raw(std::uint16_t{0}))
        .value("split.count", type, bytes);
    return refused(dir.write("m-00001-of-65536.gguf", maker.vector("a").bytes()));
  };
  mentions(with_count(quern::test::kU32, raw(std::uint32_t{65'536})), "split.count: out of range");
  mentions(with_count(quern::test::kU64, raw(~std::uint64_t{0})), "split.count: out of range");
  mentions(with_count(quern::test::kU16, raw(std::uint16_t{0})), "split.count: out of range");
  mentions(with_count(quern::test::kI32, raw(std::int32_t{-1})), "split.count: wrong value");
  mentions(with_count(quern::test::kString, quern::test::gguf_string("3")),
           "split.count: wrong value");
  mentions(with_count(quern::test::kBool, "\1"), "split.count: wrong value");
  CHECK(with_count(quern::test::kU16, raw(std::uint16_t{1})).empty());
  GgufMaker no_number;
  dir.write(
      kFirst,
      no_number.value("split.count", quern::test::kU16, raw(std::uint16_t{3})).vector("a").bytes());
  mentions(refused(dir.path() / kFirst), "split.no: wrong value (got none");
}

TEST_CASE("split GGUF: nothing outside the directory is opened", "[checkpoint]") {
  const TemporaryDirectory dir;
  write_split(dir, "model/");
  dir.write("elsewhere.gguf", part(2, 3).vector("c", 16).bytes());
  fs::remove(dir.path() / "model" / kThird);
  fs::create_symlink("../elsewhere.gguf", dir.path() / "model" / kThird);
  mentions(refused(dir.path() / "model" / kFirst), "link leads out");

  // A hub cache: all parts are links into its blobs.
  const std::string hub = "hub/models--a--b/";
  write_split(dir, hub + "blobs/");
  const fs::path snapshot = dir.path() / hub / "snapshots/abc";
  fs::create_directories(snapshot);
  for (const char* name : {kFirst, kSecond, kThird})
    fs::create_symlink(fs::path("../../blobs") / name, snapshot / name);
  CHECK(open_checkpoint(snapshot / kFirst)->tensors().size() == 3);
}
