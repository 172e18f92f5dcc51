// Header and directory of model.quern from untrusted bytes. Not here: what the sections mean
// (reader).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "quant/format.hpp"
#include "weights/layout.hpp"

namespace quern::weights {

struct SectionEntry {
  SectionKind kind;
  std::string name;
  std::uint64_t offset, bytes, checksum;
  const quant::FormatTraits* format;  // tensors, else nullptr
  std::size_t rows, columns;
};

struct Directory {
  FileHeader header;
  std::vector<SectionEntry> sections;  // file order: tensors, tokenizer if any, contract
};

// Every field of header and directory checked, with the rules of docs/FILE_FORMAT.md; an input
// error otherwise. Reads nothing outside header and directory.
Directory parse_directory(base::Bytes file, std::string_view where);

}  // namespace quern::weights
