#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/hash.hpp"
#include "base/mapped_file.hpp"
#include "base/output_directory.hpp"
#include "base/output_file.hpp"
#include "catch.hpp"

using namespace quern::base;
namespace fs = std::filesystem;

namespace {

// An empty directory, gone at the end of the test.
struct TempDir {
  TempDir() {
    std::string pattern = (fs::temp_directory_path() / "quern-test-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~TempDir() { fs::remove_all(path); }
  fs::path path;
};

void put(const fs::path& path, std::string_view text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("only regular files are opened, and nothing hangs") {
  const TempDir dir;
  ::mkfifo((dir.path / "fifo").c_str(), 0600);
  put(dir.path / "empty", "");
  put(dir.path / "text", "hello");
  CHECK_THROWS_WITH(MappedFile(dir.path / "fifo"), Catch::Contains("not a regular file"));
  CHECK_THROWS_WITH(MappedFile("/dev/zero"), Catch::Contains("not a regular file"));
  CHECK_THROWS_WITH(MappedFile(dir.path), Catch::Contains("is a directory"));
  CHECK_THROWS_WITH(MappedFile(dir.path / "absent"), Catch::Contains("No such file"));
  CHECK(MappedFile(dir.path / "empty").bytes().empty());
  MappedFile first(dir.path / "text");
  const MappedFile moved = std::move(first);
  CHECK(as_text(moved.bytes()) == "hello");
  CHECK(xxh3(moved.bytes()) == xxh3(as_bytes("hello")));
  CHECK(read_text_file(dir.path / "text", 5) == "hello");
  CHECK_THROWS_AS(read_text_file(dir.path / "text", 4), Error);
}

TEST_CASE("an output directory appears whole or not at all") {
  const TempDir dir;
  const fs::path target = dir.path / "out";
  const auto entries = [&] { return std::distance(fs::directory_iterator(dir.path), {}); };
  {
    const OutputDirectory output(target, false);
    put(output.path() / "a", "1");
    CHECK(!fs::exists(target));
  }
  CHECK(entries() == 0);  // never published: nothing is left
  {
    OutputDirectory output(target, false);
    put(output.path() / "a", "1");
    output.publish();
  }
  CHECK(read_text_file(target / "a", 9) == "1");
  CHECK_THROWS_WITH(OutputDirectory(target, false), Catch::Contains("--force"));
  const MappedFile old(target / "a");
  {
    OutputDirectory output(target, true);
    put(output.path() / "a", "2");
    output.publish();
  }
  CHECK(read_text_file(target / "a", 9) == "2");
  CHECK(as_text(old.bytes()) == "1");  // a running process keeps the old bytes
  CHECK(entries() == 1);
}

TEST_CASE("a target made while converting is not replaced without --force") {
  const TempDir dir;
  OutputDirectory output(dir.path / "out", false);
  fs::create_directory(dir.path / "out");
  put(dir.path / "out" / "mine", "x");
  CHECK_THROWS_AS(output.publish(), Error);
  CHECK(fs::exists(dir.path / "out" / "mine"));
}

TEST_CASE("files are written, padded, patched and replaced atomically") {
  const TempDir dir;
  {
    OutputFile file(dir.path / "f");
    file.write(as_bytes("abc"));
    file.pad_to(64);
    CHECK(file.size() == 64);
    file.write_at(1, as_bytes("X"));
    file.sync();
    CHECK_THROWS_AS(OutputFile(dir.path / "f"), Error);
  }
  CHECK(read_text_file(dir.path / "f", 99) == "aXc" + std::string(61, '\0'));
  write_file_atomically(dir.path / "f", "new");
  CHECK(read_text_file(dir.path / "f", 99) == "new");
  CHECK_THROWS_WITH(OutputFile("/dev/full/x"), Catch::Contains("cannot create"));
}

TEST_CASE("a mapping is in memory once it is populated, whatever part is named") {
  const TempDir dir;
  const std::string text(3 * 65536 + 17, 'x');
  put(dir.path / "file", text);
  const MappedFile file(dir.path / "file");
  file.populate(0, text.size());
  CHECK(file.resident_bytes() == text.size());
  file.populate(5, 1);
  file.populate(text.size() - 1, 1000);  // beyond the end: what there is
  file.populate(text.size() + 4096, 1);
  CHECK(file.resident_bytes() == text.size());
  put(dir.path / "empty", "");
  const MappedFile empty(dir.path / "empty");
  empty.populate(0, 1);
  CHECK(empty.resident_bytes() == 0);
}

// Bytes of `file` in memory, page by page. The kernel decides how much is read around what was asked for: 8 MiB of
// read-ahead on either side were seen.
std::size_t counted_resident_bytes(const MappedFile& file) {
  const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> in_memory((file.bytes().size() + page_bytes - 1) / page_bytes);
  void* begin = const_cast<std::byte*>(file.bytes().data());  // NOLINT: mincore changes nothing
  REQUIRE(::mincore(begin, file.bytes().size(), in_memory.data()) == 0);
  return page_bytes * static_cast<std::size_t>(std::count_if(in_memory.begin(), in_memory.end(),
                                                             [](unsigned char page) { return (page & 1U) != 0; }));
}

TEST_CASE("what a large mapping has in memory is estimated from parts of it") {
  const TempDir dir;
  constexpr std::size_t kBytes = (std::size_t{5} << 30) + 12345, kPart = std::size_t{64} << 20;
  put(dir.path / "file", "");
  std::filesystem::resize_file(dir.path / "file", kBytes);  // a hole: takes no space
  const MappedFile file(dir.path / "file");
  CHECK(file.resident_bytes() <= kBytes / 1000);
  file.populate(kBytes / 2, kPart);
  const auto counted = static_cast<double>(counted_resident_bytes(file));
  CHECK(counted >= static_cast<double>(kPart));
  CHECK(std::abs(static_cast<double>(file.resident_bytes()) - counted) < 0.1 * counted);
}
