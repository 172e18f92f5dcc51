// The tokenizer section of model.quern: vocabulary bytes, hash tables for tokens and merges, laid out to be
// used where they lie. docs/FILE_FORMAT.md describes the bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"

namespace quern::text {

// Input of the builder: token i's bytes (byte-level alphabets already undone: real bytes), and the merges in
// rank order as pairs of ids with the id of the result.
struct Vocabulary {
  std::vector<std::string> tokens;              // index = id; "" = unused id
  struct Merge { std::int32_t left, right, result; };
  std::vector<Merge> merges;
};

// Serialises; deterministic.
std::vector<std::byte> build_tokenizer_tables(const Vocabulary& vocabulary);

// A checked view of such a section.
class TokenizerTables {
 public:
  TokenizerTables(base::Bytes section, std::string_view where);

  std::size_t size() const;
  std::string_view token(std::int32_t id) const;                 // "" when out of range or unused
  std::int32_t find(std::string_view token) const;               // -1 when absent
  struct MergeResult { std::uint32_t rank; std::int32_t result; };  // result -1: the pair does not merge
  MergeResult merge(std::int32_t left, std::int32_t right) const;

 private:
  base::Bytes section_;
  // Pointers into the section, checked once at construction.
  const std::uint32_t* token_offsets_ = nullptr;
  const char* token_bytes_ = nullptr;
  const std::byte* token_slots_ = nullptr;
  const std::byte* merge_slots_ = nullptr;
  std::uint32_t n_tokens_ = 0, token_slot_mask_ = 0, merge_slot_mask_ = 0;
};

}  // namespace quern::text
