// model.quern -> validated directory -> views. docs/FILE_FORMAT.md describes every byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.hpp"
#include "weights/tensor_view.hpp"

namespace quern::weights {

class WeightFile {
 public:
  // Parses header and directory from bytes (fuzzed, no file needed). Checks magic, version,
  // endianness, total length, header and directory checksums; every section inside the file,
  // aligned, sorted, disjoint, no trailing bytes; names unique; shapes and sizes agree with the
  // format. `where` names the file.
  static WeightFile parse(base::Bytes bytes, std::string_view where);

  // Maps and parses.
  static WeightFile open(const std::filesystem::path& path);

  std::string_view contract_json() const;  // the copy of model.json inside
  std::uint64_t contract_hash() const;     // structural hash it was written with
  // The checksum of checksums, as WeightWriter::finish() returned it.
  std::uint64_t checksum() const;
  base::Bytes tokenizer_tables() const;  // empty when the model has no tokenizer
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const TensorView* find(std::string_view name) const;
  const base::MappedFile& file() const { return file_; }
  std::string_view where() const { return where_; }

  // Checks the checksum of every section and the padding between them; throws an input error naming
  // section, offset, got, expected.
  void verify_checksums() const;

 private:
  struct Section {
    std::string name;
    std::uint64_t offset, bytes, checksum;
  };
  std::string where_;
  base::MappedFile file_;
  base::Bytes bytes_;
  std::vector<Section> sections_;
  std::vector<TensorView> tensors_;
  std::vector<std::size_t> by_name_;  // indices of tensors_, sorted by name
  base::Bytes contract_json_, tokenizer_tables_;
  std::uint64_t contract_hash_ = 0, checksum_ = 0;
};

}  // namespace quern::weights
