#include "weights/directory.hpp"

#include <cstring>

#include "base/hash.hpp"
#include "quant/formats.hpp"
#include "weights/header.hpp"

namespace quern::weights {

namespace {

using base::cat;
using base::reject;

// Walks the entries in file order; what each may hold follows from the ones before.
class DirectoryParser {
 public:
  DirectoryParser(base::Bytes file, const FileHeader& header, std::string_view where)
      : header_(header), where_(where) {
    const base::Bytes directory = file.subspan(header.directory_offset, header.directory_bytes);
    entries_ = directory.first(header.n_sections * sizeof(DirectoryEntry));
    names_ = base::as_text(directory.subspan(entries_.size()));
  }

  std::vector<SectionEntry> parse() {
    std::vector<SectionEntry> sections;
    sections.reserve(header_.n_sections);
    for (std::size_t i = 0; i < header_.n_sections; ++i) sections.push_back(parse_entry(i));
    if (names_used_ != names_.size())
      reject(place(header_.n_sections), "directory has bytes behind the last name",
             cat(names_.size() - names_used_), "0");
    if (next_offset_ != header_.directory_offset)
      reject(cat(where_, ":24"), "the directory must follow the last section",
             cat(header_.directory_offset), cat(next_offset_));
    return sections;
  }

 private:
  // Where entry i lies, for error lines.
  std::string place(std::size_t i) const {
    return cat(where_, ":", header_.directory_offset + i * sizeof(DirectoryEntry));
  }

  SectionEntry parse_entry(std::size_t i) {
    DirectoryEntry entry;
    std::memcpy(&entry, entries_.data() + i * sizeof entry, sizeof entry);
    const std::string at = place(i);
    SectionEntry section{.kind = kind_of(entry, i, at),
                         .name = name_of(entry, at),
                         .offset = entry.offset,
                         .bytes = entry.bytes,
                         .checksum = entry.checksum,
                         .format = nullptr,
                         .rows = entry.rows,
                         .columns = entry.columns};
    const std::string what = cat(at, ": section \"", section.name, "\"");
    if (entry.reserved != 0) reject(what, "reserved bytes are not zero", cat(entry.reserved), "0");
    check_place(entry, what);
    if (section.kind == SectionKind::tensor)
      check_tensor(entry, section, what);
    else
      check_plain(entry, section, what);
    return section;
  }

  SectionKind kind_of(const DirectoryEntry& entry, std::size_t i, const std::string& at) const {
    SectionKind expected = SectionKind::tensor;
    if (i >= header_.n_tensors)
      expected = i + 1 == header_.n_sections ? SectionKind::contract : SectionKind::tokenizer;
    if (entry.kind != static_cast<std::uint32_t>(expected))
      reject(at, "section of the wrong kind", cat(entry.kind),
             cat(static_cast<std::uint32_t>(expected)));
    return expected;
  }

  std::string name_of(const DirectoryEntry& entry, const std::string& at) {
    if (entry.name_offset != names_used_ || entry.name_bytes > names_.size() - names_used_)
      reject(at, "section name is not where it must be",
             cat("offset ", entry.name_offset, ", length ", entry.name_bytes),
             cat("offset ", names_used_, ", within ", names_.size()));
    const std::string_view name = names_.substr(names_used_, entry.name_bytes);
    if (!valid_name(name))
      reject(at, "section name is empty, too long or not printable ASCII",
             cat("\"", base::printable(name), "\""));
    names_used_ += name.size();
    return std::string(name);
  }

  // Sections follow one another with less than kAlignment bytes of padding: sorted, disjoint,
  // aligned.
  void check_place(const DirectoryEntry& entry, const std::string& what) {
    if (entry.offset != next_offset_)
      reject(what, "section offset", cat(entry.offset), cat(next_offset_));
    if (entry.bytes == 0 || entry.bytes > header_.directory_offset - entry.offset)
      reject(what, "section length", cat(entry.bytes),
             cat("1 to ", header_.directory_offset - entry.offset));
    next_offset_ = aligned(entry.offset + entry.bytes);
    if (next_offset_ > header_.directory_offset)
      reject(what, "section runs into the directory", cat(next_offset_),
             cat(header_.directory_offset));
  }

  static void check_tensor(const DirectoryEntry& entry, SectionEntry& section,
                           const std::string& what) {
    section.format = quant::find_format(static_cast<quant::FormatId>(entry.format));
    if (section.format == nullptr)
      reject(what, cat("unknown number format ", entry.format, ": written by a newer quern?"));
    if (entry.rows == 0 || entry.rows > kMaxWidth || entry.columns == 0 ||
        entry.columns > kMaxWidth)
      reject(what, "shape out of range", cat("[", entry.rows, ", ", entry.columns, "]"),
             cat("each 1 to ", kMaxWidth));
    // panel_bytes cannot overflow below kMaxWidth; the product with the panels can.
    const std::uint64_t bytes =
        section.format->id == quant::FormatId::rows_f32
            ? base::checked_mul(base::checked_mul(entry.rows, entry.columns, what), 4, what)
            : base::checked_mul(quant::n_panels(entry.rows),
                                quant::panel_bytes(*section.format, entry.columns), what);
    if (bytes != entry.bytes)
      reject(what, cat("length of [", entry.rows, ", ", entry.columns, "] ", section.format->name),
             cat(entry.bytes), cat(bytes));
  }

  static void check_plain(const DirectoryEntry& entry, const SectionEntry& section,
                          const std::string& what) {
    const std::string_view name =
        section.kind == SectionKind::contract ? kContractName : kTokenizerName;
    if (section.name != name) reject(what, "section name", section.name, name);
    if (entry.format != 0 || entry.rows != 0 || entry.columns != 0)
      reject(what, "format and shape of a section that is no tensor must be zero");
  }

  const FileHeader& header_;
  std::string_view where_;
  base::Bytes entries_;
  std::string_view names_;
  std::uint64_t next_offset_ = sizeof(FileHeader);
  std::size_t names_used_ = 0;
};

}  // namespace

Directory parse_directory(base::Bytes file, std::string_view where) {
  Directory directory{.header = parse_header(file, where), .sections = {}};
  const FileHeader& header = directory.header;
  const std::uint64_t checksum =
      base::xxh3(file.subspan(header.directory_offset, header.directory_bytes));
  if (checksum != header.directory_checksum)
    reject(cat(where, ":", header.directory_offset), "damaged directory: checksum differs",
           cat(checksum), cat(header.directory_checksum));
  directory.sections = DirectoryParser(file, header, where).parse();
  return directory;
}

}  // namespace quern::weights
