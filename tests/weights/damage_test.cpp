// Damaged, cut and foreign files: always one error line, never a crash, never a wrong reading.
#include <fcntl.h>

#include <array>
#include <chrono>
#include <fstream>

#include "sample_file.hpp"

using namespace quern;
using namespace quern::weights;
using namespace quern::weights::testing;

TEST_CASE("every truncation of the header and 64 of the body are found at once") {
  const FileBytes file = write_sample();
  CHECK(contains(error_of({}), "the file is empty"));
  for (std::size_t size = 1; size < 128; ++size) {
    const FileBytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(contains(error_of(cut), base::cat("truncated: ", size, " bytes")));
  }
  for (std::size_t i = 0; i < 64; ++i) {
    const std::size_t size = 128 + (file.size() - 129) * i / 63;
    const FileBytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(contains(error_of(cut),
                   base::cat("truncated: ", size, " bytes, header says ", file.size())));
  }
}

TEST_CASE("trailing bytes are found") {
  FileBytes file = write_sample();
  file.push_back(std::byte{0});
  CHECK(contains(error_of(file), "trailing bytes"));
}

TEST_CASE("every flipped bit of the header is found") {
  const FileBytes file = write_sample();
  for (std::size_t bit = 0; bit < 128 * 8; ++bit) {
    FileBytes damaged = file;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    INFO("bit " << bit);
    CHECK(!error_of(damaged).empty());
  }
}

TEST_CASE("every flipped byte of the directory is found") {
  const FileBytes file = write_sample();
  for (std::size_t at = directory_offset(file); at < file.size(); ++at) {
    FileBytes damaged = file;
    damaged[at] ^= std::byte{0x40};
    CHECK(contains(error_of(damaged), "damaged directory"));
  }
}

TEST_CASE("a flipped bit of any section passes the start and is named by the check") {
  const FileBytes file = write_sample();
  std::vector<std::string> names;
  for (const SampleTensor& tensor : sample_tensors()) names.emplace_back(tensor.name);
  names.emplace_back("tokenizer");
  names.emplace_back("contract");
  REQUIRE(n_sections(file) == names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto offset = get<std::uint64_t>(file, entry_offset(file, i));
    const auto bytes = get<std::uint64_t>(file, entry_offset(file, i) + 8);
    for (const std::uint64_t at : {offset, offset + bytes / 2, offset + bytes - 1}) {
      FileBytes damaged = file;
      damaged[at] ^= std::byte{0x10};
      CHECK(error_of(damaged).empty());
      const std::string line = error_of(damaged, true);
      CHECK(contains(line, base::cat("section \"", names[i], "\"")));
      CHECK(contains(line, base::cat(":", offset, ":")));
    }
  }
}

TEST_CASE("padding between sections is zero, and the check says so when it is not") {
  const FileBytes file = write_sample();
  std::size_t n_padding = 0;
  for (std::size_t i = 0; i < n_sections(file); ++i) {
    const auto end = get<std::uint64_t>(file, entry_offset(file, i)) +
                     get<std::uint64_t>(file, entry_offset(file, i) + 8);
    for (std::uint64_t at = end; at % 64 != 0; ++at, ++n_padding) {
      FileBytes damaged = file;
      damaged[at] = std::byte{1};
      CHECK(contains(error_of(damaged, true), base::cat(":", at, ": padding")));
    }
  }
  CHECK(n_padding > 0);
}

TEST_CASE("foreign files are named, with what to do") {
  const auto error = [](std::string_view start) {
    std::string text(start);
    text.resize(4096, '\0');
    const base::Bytes bytes = base::as_bytes(text);
    return error_of({bytes.begin(), bytes.end()});
  };
  using namespace std::string_view_literals;
  CHECK(contains(error("GGUF\x03\x00\x00\x00"sv), "GGUF file: run quern-convert"));
  CHECK(contains(error("\x40\x00\x00\x00\x00\x00\x00\x00{\"a\":"sv),
                 "safetensors file: run quern-convert"));
  CHECK(contains(error("PK\x03\x04"), "zip archive"));
  CHECK(contains(error("version https://git-lfs.github.com/spec/v1"), "Git LFS pointer"));
  CHECK(contains(error("{\"quern\": 1}"), "JSON file"));
  CHECK(contains(error("\x1b[31mred"), "not a quern weight file"));
  CHECK(contains(error("QUERN\n\x1A"), "not a quern weight file"));  // line ends converted
}

TEST_CASE("versions and byte order") {
  const FileBytes file = write_sample();
  for (const std::uint32_t version : {0U, 2U, 9U, 0x01000000U, 0xFFFFFFFFU}) {
    FileBytes other = file;
    put(other, 12, version);
    CHECK(
        contains(error_of(other), base::cat("format version ", version, ", this quern reads 1-1")));
    fix_header_checksum(other);
    CHECK(contains(error_of(other), base::cat("format version ", version)));
  }
  FileBytes big_endian = file;
  put(big_endian, 8, std::uint32_t{0x0D0C0B0A});
  CHECK(contains(error_of(big_endian), "big-endian file"));
}

TEST_CASE("a sparse file of 8 TiB is refused quickly") {
  constexpr std::uint64_t kSize = std::uint64_t{8} << 40;
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory / "model.quern";
  // A header that is right about its size, over a directory of zeros.
  FileBytes start = write_sample();
  start.resize(128);
  const std::array<std::byte, 64> zeros{};
  put(start, 16, kSize);
  put(start, 24, kSize - 64);
  put(start, 32, std::uint64_t{64});
  put(start, 40, base::xxh3(zeros));
  put(start, 56, std::uint32_t{1});
  put(start, 60, std::uint32_t{1});
  fix_header_checksum(start);
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(start.data()), 128);
  if (::truncate(path.c_str(), static_cast<off_t>(kSize)) != 0) {
    WARN("skipped: the file system has no files of 8 TiB");
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_AS(WeightFile::open(path), base::Error);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
}
