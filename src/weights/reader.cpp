#include "weights/reader.hpp"

#include <algorithm>
#include <numeric>

#include "base/hash.hpp"
#include "weights/directory.hpp"

namespace quern::weights {

namespace {

using base::cat;
using base::reject;

constexpr std::uint64_t kVerifyChunk = std::uint64_t{16} << 20;

// Tensor indices by name; a name twice is an error.
std::vector<std::size_t> sort_by_name(const std::vector<TensorView>& tensors,
                                      std::string_view where) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return tensors[a].name < tensors[b].name; });
  const auto twice = std::adjacent_find(
      order.begin(), order.end(),
      [&](std::size_t a, std::size_t b) { return tensors[a].name == tensors[b].name; });
  if (twice != order.end())
    reject(where, cat("tensor \"", tensors[*twice].name, "\" occurs twice"));
  return order;
}

}  // namespace

WeightFile WeightFile::parse(base::Bytes bytes, std::string_view where) {
  const Directory directory = parse_directory(bytes, where);
  WeightFile file;
  file.where_ = where;
  file.bytes_ = bytes;
  file.contract_hash_ = directory.header.contract_hash;
  file.checksum_ = directory.header.checksum;
  for (const SectionEntry& section : directory.sections) {
    const base::Bytes content = bytes.subspan(section.offset, section.bytes);
    file.sections_.push_back({section.name, section.offset, section.bytes, section.checksum});
    if (section.kind == SectionKind::tensor)
      file.tensors_.push_back(
          {section.name, section.format, section.rows, section.columns, content});
    else if (section.kind == SectionKind::tokenizer)
      file.tokenizer_tables_ = content;
    else
      file.contract_json_ = content;
  }
  file.by_name_ = sort_by_name(file.tensors_, where);
  return file;
}

WeightFile WeightFile::open(const std::filesystem::path& path) {
  base::MappedFile mapped(path);
  WeightFile file = parse(mapped.bytes(), base::printable(path.string()));
  file.file_ = std::move(mapped);  // the bytes stay where they are
  return file;
}

std::string_view WeightFile::contract_json() const {
  return base::as_text(contract_json_);
}
std::uint64_t WeightFile::contract_hash() const {
  return contract_hash_;
}
std::uint64_t WeightFile::checksum() const {
  return checksum_;
}
base::Bytes WeightFile::tokenizer_tables() const {
  return tokenizer_tables_;
}

const TensorView* WeightFile::find(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](std::size_t index, std::string_view wanted) { return tensors_[index].name < wanted; });
  if (found == by_name_.end() || tensors_[*found].name != name) return nullptr;
  return &tensors_[*found];
}

void WeightFile::verify_checksums() const {
  for (const Section& section : sections_) {
    base::Hasher hasher;
    // In chunks whose pages are given back, so that a check of a file larger than RAM disturbs
    // little.
    for (std::uint64_t done = 0; done < section.bytes; done += kVerifyChunk) {
      const std::uint64_t length = std::min(kVerifyChunk, section.bytes - done);
      hasher.update(bytes_.subspan(section.offset + done, length));
      file_.advise(base::MappedFile::Advice::dont_need, section.offset + done, length);
    }
    const std::string at = cat(where_, ":", section.offset, ": section \"", section.name, "\"");
    if (hasher.digest() != section.checksum)
      reject(at, cat("checksum of ", section.bytes, " bytes differs"), cat(hasher.digest()),
             cat(section.checksum));
    const std::uint64_t end = section.offset + section.bytes;
    for (std::uint64_t i = end; i < aligned(end); ++i)
      if (bytes_[i] != std::byte{0}) reject(cat(where_, ":", i), "padding is not zero");
  }
}

}  // namespace quern::weights
