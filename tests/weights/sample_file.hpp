// A small weight file in memory, and the means to damage it on purpose: header and directory fields
// by their documented offsets, checksums fixed up.
#pragma once

#include <unistd.h>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "catch.hpp"
#include "quant/formats.hpp"
#include "weights/reader.hpp"
#include "weights/writer.hpp"

namespace quern::weights::testing {

using FileBytes = std::vector<std::byte>;

// A directory of this test's own, removed at the end of the scope.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "quern-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline FileBytes read_file(const std::filesystem::path& path) {
  const base::MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

struct SampleTensor {
  std::string_view name;
  const quant::FormatTraits* format;
  std::size_t rows, columns;
};

inline std::vector<SampleTensor> sample_tensors() {
  return {{"embedding.tokens", quant::find_format("q4"), 20, 96},
          {"decoder.0.0.norm_in.weight", quant::find_format(quant::FormatId::rows_f32), 1, 5},
          {"decoder.0.0.q.weight", quant::find_format("q8"), 16, 320},
          {"decoder.0.0.k.weight", quant::find_format("f32"), 3, 7},
          {"decoder.0.0.v.weight", quant::find_format("q5_1"), 17, 64}};
}

inline constexpr std::string_view kSampleContract = "{\"quern\": 1, \"name\": \"sample\"}";
inline constexpr std::uint64_t kSampleHash = 0x1122334455667788;

// The tensor's content: a pattern that depends on its name.
inline FileBytes sample_content(const SampleTensor& tensor) {
  FileBytes content(quant::tensor_bytes(*tensor.format, tensor.rows, tensor.columns));
  std::uint64_t state = base::xxh3(base::as_bytes(tensor.name));
  for (std::byte& byte : content) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56);
  }
  return content;
}

// piece: how many bytes go into one append().
inline FileBytes write_sample(std::size_t piece = 1000, bool tokenizer = true) {
  const TemporaryDirectory directory;
  WeightWriter writer(directory / "model.quern");
  for (const SampleTensor& tensor : sample_tensors()) {
    writer.begin_tensor(tensor.name, *tensor.format, tensor.rows, tensor.columns);
    const FileBytes content = sample_content(tensor);
    for (std::size_t at = 0; at < content.size(); at += piece)
      writer.append(base::Bytes(content).subspan(at, std::min(piece, content.size() - at)));
    writer.end_tensor();
  }
  if (tokenizer) writer.write_tokenizer(base::as_bytes("tables of a tokenizer"));
  writer.finish(kSampleContract, kSampleHash);
  return read_file(directory / "model.quern");
}

// Fields by offset, as docs/FILE_FORMAT.md has them.
template <class T>
T get(const FileBytes& file, std::uint64_t offset) {
  T value;
  REQUIRE(offset + sizeof value <= file.size());
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}
template <class T>
void put(FileBytes& file, std::uint64_t offset, T value) {
  REQUIRE(offset + sizeof value <= file.size());
  std::memcpy(file.data() + offset, &value, sizeof value);
}

inline std::uint64_t directory_offset(const FileBytes& file) {
  return get<std::uint64_t>(file, 24);
}
inline std::uint64_t entry_offset(const FileBytes& file, std::size_t i) {
  return directory_offset(file) + 64 * i;
}
inline std::size_t n_sections(const FileBytes& file) {
  return get<std::uint32_t>(file, 56);
}

inline void fix_header_checksum(FileBytes& file) {
  put(file, 120, base::xxh3(base::Bytes(file).first(120)));
}
// Both checksums, for a directory that still lies in the file.
inline void fix_checksums(FileBytes& file) {
  const auto offset = directory_offset(file), bytes = get<std::uint64_t>(file, 32);
  if (offset <= file.size() && bytes <= file.size() - offset)
    put(file, 40, base::xxh3(base::Bytes(file).subspan(offset, bytes)));
  fix_header_checksum(file);
}

// The error line of reading the file, or "" when it is accepted. Any error must be one short line
// of plain characters that blames the input.
inline std::string error_of(const FileBytes& file, bool verify = false) {
  try {
    const WeightFile parsed = WeightFile::parse(file, "model.quern");
    if (verify) parsed.verify_checksums();
    return {};
  } catch (const base::Error& error) {
    CHECK(error.code() == base::ExitCode::input);
    const std::string line = error.what();
    CHECK(line.size() <= 500);
    CHECK(line.starts_with("model.quern"));
    CHECK(base::printable(line, 500) == line);
    return line;
  }
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace quern::weights::testing
