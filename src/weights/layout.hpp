// The bytes of model.quern: header, directory entry, and the constants both sides share.
// docs/FILE_FORMAT.md describes them; a test compares its worked example with what the writer
// writes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace quern::weights {

static_assert(std::endian::native == std::endian::little, "quern files are read in place");

// As in PNG: line ends and a DOS end-of-file mark, so that a text-mode transfer is noticed.
inline constexpr std::string_view kMagic = "QUERN\r\n\x1A";
inline constexpr std::uint32_t kEndianMark = 0x0A0B0C0D;
inline constexpr std::uint32_t kVersion = 1;        // written
inline constexpr std::uint32_t kOldestVersion = 1;  // read
inline constexpr std::uint64_t kAlignment = 64;     // of every section and of the directory

// Magic, endian mark and version keep their places in every version.
struct FileHeader {
  std::array<char, 8> magic;
  std::uint32_t endian_mark;
  std::uint32_t version;
  std::uint64_t file_bytes;
  std::uint64_t directory_offset;  // the directory ends the file
  std::uint64_t directory_bytes;
  std::uint64_t directory_checksum;
  std::uint64_t contract_hash;
  std::uint32_t n_sections;
  std::uint32_t n_tensors;                // the first sections
  std::array<std::uint64_t, 7> reserved;  // zero
  std::uint64_t checksum;                 // XXH3 of the 120 bytes before
};
static_assert(sizeof(FileHeader) == 128);
static_assert(offsetof(FileHeader, file_bytes) == 16);
static_assert(offsetof(FileHeader, n_sections) == 56);
static_assert(offsetof(FileHeader, checksum) == 120);

enum class SectionKind : std::uint32_t { tensor = 1, tokenizer = 2, contract = 3 };

// One section. The directory is n_sections of these, then the names, one after another.
struct DirectoryEntry {
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t checksum;  // XXH3 of the section
  std::uint64_t rows;      // tensors; else 0
  std::uint64_t columns;
  std::uint32_t kind;
  std::uint32_t format;       // quant::FormatId of a tensor, else 0
  std::uint32_t name_offset;  // in the names
  std::uint32_t name_bytes;
  std::uint64_t reserved;  // zero
};
static_assert(sizeof(DirectoryEntry) == 64);
static_assert(offsetof(DirectoryEntry, kind) == 40);
static_assert(offsetof(DirectoryEntry, name_offset) == 48);

inline constexpr std::uint64_t kMaxSections = 1U << 20;
inline constexpr std::uint64_t kMaxNameBytes = 255;
inline constexpr std::uint64_t kMaxWidth = std::uint64_t{1} << 40;  // rows or columns
inline constexpr std::string_view kTokenizerName = "tokenizer";
inline constexpr std::string_view kContractName = "contract";

// The multiple of kAlignment at or after offset (which is at most the size of a file).
constexpr std::uint64_t aligned(std::uint64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

// Names of tensors: printable ASCII without spaces.
constexpr bool valid_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) return false;
  for (const char c : name)
    if (c <= ' ' || c > '~') return false;
  return true;
}

}  // namespace quern::weights
