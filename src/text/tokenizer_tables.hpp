// The tokenizer section of model.quern: vocabulary bytes, hash tables for tokens and merges, laid
// out to be used where they lie. docs/TOKENIZER_TABLES.md describes the bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"

namespace quern::text {

// Input of the builder: token i's bytes (byte-level alphabets already undone: real bytes), and the
// merges in rank order as pairs of ids with the id of the result.
struct Vocabulary {
  std::vector<std::string> tokens;  // index = id; "" = unused id
  struct Merge {
    std::int32_t left, right, result;
  };
  std::vector<Merge> merges;      // of two equal pairs the later one counts
  std::vector<bool> decode_only;  // true: the model never produces it from text; may be short
};

// Serialises; deterministic. Of two ids with equal bytes the lower one is found by its text.
std::vector<std::byte> build_tokenizer_tables(const Vocabulary& vocabulary);

// A checked view of such a section: every offset, id and slot is checked once at construction, one
// pass.
class TokenizerTables {
 public:
  TokenizerTables(base::Bytes section, std::string_view where);

  std::size_t size() const { return n_tokens_; }
  std::string_view token(std::int32_t id) const;  // "" when out of range or unused

  // whole: merging the token's own bytes gives this token alone, so that a word found here is done.
  struct Found {
    std::int32_t id;
    bool whole;
  };  // id -1 when absent
  Found lookup(std::string_view token) const;
  std::int32_t find(std::string_view token) const { return lookup(token).id; }

  struct MergeResult {
    std::uint32_t rank;
    std::int32_t result;
  };  // result -1: the pair does not merge
  MergeResult merge(std::int32_t left, std::int32_t right) const;

 private:
  void check_tokens(std::string_view where) const;
  void check_merges(std::string_view where) const;

  // Pointers into the section, checked once at construction.
  const std::byte* token_offsets_ = nullptr;  // u32 [n_tokens + 1]
  const std::byte* token_slots_ = nullptr;    // u64 [token_slot_mask + 1]
  const std::byte* merge_slots_ = nullptr;    // u64 [merge_slot_mask + 1]
  const std::byte* merges_ = nullptr;         // u32 [n_merges, 3]
  const char* token_bytes_ = nullptr;
  std::uint64_t n_token_bytes_ = 0;
  std::uint32_t n_tokens_ = 0, n_merges_ = 0, token_slot_mask_ = 0, merge_slot_mask_ = 0;
};

}  // namespace quern::text
