#include "weights/header.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/hash.hpp"

namespace quern::weights {

namespace {

using base::cat;
using base::reject;

// What a file that is not ours is, by its first bytes; "" when unknown.
std::string_view foreign_kind(std::string_view text) {
  if (text.starts_with("GGUF")) return "this is a GGUF file: run quern-convert on it";
  if (text.size() > 9 && text[8] == '{' && text.substr(4, 4) == std::string_view("\0\0\0\0", 4))
    return "this is a safetensors file: run quern-convert on its directory";
  if (text.starts_with("PK\x03\x04"))
    return "this is a zip archive (a PyTorch checkpoint?): quern-convert reads safetensors and "
           "GGUF";
  if (text.starts_with("version https://git-lfs"))
    return "this is a Git LFS pointer: fetch the file itself";
  if (text.starts_with("{")) return "this is a JSON file: give the directory or model.quern";
  return {};
}

void check_magic(base::Bytes file, std::string_view where) {
  const std::string_view text = base::as_text(file.first(std::min<std::size_t>(file.size(), 64)));
  if (text.empty()) reject(where, "truncated: the file is empty");
  if (text.starts_with(kMagic)) return;
  if (kMagic.starts_with(text)) return;  // cut inside the magic: reported as truncated
  std::string what = "not a quern weight file";
  if (const std::string_view kind = foreign_kind(text); !kind.empty()) what += cat("; ", kind);
  reject(where, what, base::printable(text.substr(0, kMagic.size()), 40), "QUERN magic");
}

void check_endianness_and_version(const FileHeader& header, std::string_view where) {
  if (header.endian_mark == __builtin_bswap32(kEndianMark))
    reject(cat(where, ":8"), "big-endian file: quern files are little-endian");
  if (header.endian_mark != kEndianMark)
    reject(cat(where, ":8"), "damaged header: bad endianness mark", cat(header.endian_mark),
           cat(kEndianMark));
  if (header.version < kOldestVersion || header.version > kVersion)
    reject(
        cat(where, ":12"),
        cat("format version ", header.version, ", this quern reads ", kOldestVersion, "-", kVersion,
            header.version > kVersion ? ": update quern" : ": convert the model again"));
}

void check_reserved(const FileHeader& header, std::string_view where) {
  for (const std::uint64_t word : header.reserved)
    if (word != 0) reject(cat(where, ":64"), "reserved header bytes are not zero", cat(word), "0");
}

void check_directory_place(const FileHeader& header, std::string_view where) {
  const std::uint64_t end =
      base::checked_add(header.directory_offset, header.directory_bytes, cat(where, ":24"));
  if (header.directory_offset < sizeof(FileHeader) || header.directory_offset % kAlignment != 0)
    reject(cat(where, ":24"), "directory offset inside the header or not aligned",
           cat(header.directory_offset));
  if (end != header.file_bytes)
    reject(cat(where, ":24"), "the directory must end the file", cat(end), cat(header.file_bytes));
  // Before any memory is sized by them.
  if (header.n_sections > kMaxSections ||
      header.n_sections > header.directory_bytes / sizeof(DirectoryEntry))
    reject(
        cat(where, ":56"), "more sections than the directory holds", cat(header.n_sections),
        cat("at most ", std::min(kMaxSections, header.directory_bytes / sizeof(DirectoryEntry))));
  const std::uint64_t least = std::uint64_t{header.n_tensors} + 1;
  if (header.n_sections < least || header.n_sections > least + 1)
    reject(cat(where, ":56"), "sections are the tensors, a tokenizer or none, and the contract",
           cat(header.n_sections), cat(least, " or ", least + 1));
}

}  // namespace

FileHeader parse_header(base::Bytes file, std::string_view where) {
  check_magic(file, where);
  FileHeader header{};
  if (file.size() < sizeof header)
    reject(where, cat("truncated: ", file.size(), " bytes, the header alone has ", sizeof header));
  std::memcpy(&header, file.data(), sizeof header);
  check_endianness_and_version(header, where);
  const std::uint64_t checksum = base::xxh3(file.first(offsetof(FileHeader, checksum)));
  if (header.checksum != checksum)
    reject(cat(where, ":120"), "damaged header: checksum differs", cat(checksum),
           cat(header.checksum));
  if (header.file_bytes > file.size())
    reject(where, cat("truncated: ", file.size(), " bytes, header says ", header.file_bytes));
  if (header.file_bytes < file.size())
    reject(where, cat("trailing bytes: ", file.size(), " bytes, header says ", header.file_bytes));
  check_reserved(header, where);
  check_directory_place(header, where);
  return header;
}

}  // namespace quern::weights
