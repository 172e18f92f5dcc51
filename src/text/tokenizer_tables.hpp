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
  std::vector<bool> whole_only;   // true: found by its text, but not in the trie; may be short
  std::vector<double> scores;     // of each token, or none at all
  double unk_score = 0;           // of a character without a token, where there are scores
  std::size_t n_ids = 0;  // 0: all. Tokens from here on have no id: text gives unknown for them
  std::size_t first_decoded = 0;  // id i reads back as token first_decoded + i
  bool trie = false;              // search by longest and common prefixes (unigram, wordpiece)
  std::string charsmap;           // compiled character map of a normalizer
  bool byte_level = true;         // one symbol a byte, else one a character
};

// Serialises; deterministic. Of two ids with equal bytes the lower one is found by its text.
std::vector<std::byte> build_tokenizer_tables(const Vocabulary& vocabulary);

// A checked view of such a section: every offset, id and slot is checked once at construction, one
// pass.
class TokenizerTables {
 public:
  TokenizerTables(base::Bytes section, std::string_view where);

  std::size_t size() const { return n_ids_; }        // ids
  std::string_view token(std::int32_t index) const;  // "" when out of range or unused
  std::string_view decoded(std::int32_t id) const;   // what the id reads back as
  bool has_second_vocabulary() const {
    return first_decoded_ > 0;
  }                                   // ids read back as other tokens
  std::size_t decoded_size() const {  // ids that read back
    return first_decoded_ > 0 ? n_tokens_ - first_decoded_ : n_ids_;
  }
  std::int32_t byte_id(unsigned char byte) const;  // the token of one byte, -1 without one
  bool is_id(std::int32_t token) const { return static_cast<std::uint32_t>(token) < n_ids_; }

  bool has_scores() const { return n_scores_ > 0; }
  double score(std::int32_t token) const;  // token in [0, all tokens)
  double unk_score() const { return unk_score_; }
  std::string_view charsmap() const { return charsmap_; }

  // The trie over the searchable tokens; a node is a prefix, node 0 the empty one.
  bool has_trie() const { return n_nodes_ > 0; }
  std::int64_t child(std::uint32_t node, unsigned char byte) const;  // -1 when there is none
  std::int32_t token_at(std::uint32_t node) const;  // the token that is this prefix, -1 for none

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
  void check_trie(std::string_view where) const;

  // Pointers into the section, checked once at construction.
  const std::byte* token_offsets_ = nullptr;  // u32 [n_tokens + 1]
  const std::byte* token_slots_ = nullptr;    // u64 [token_slot_mask + 1]
  const std::byte* merge_slots_ = nullptr;    // u64 [merge_slot_mask + 1]
  const std::byte* merges_ = nullptr;         // u32 [n_merges, 3]
  const std::byte* byte_ids_ = nullptr;       // u32 [256], id + 1
  const std::byte* scores_ = nullptr;         // f64 [n_scores]
  const std::byte* first_child_ = nullptr;    // u32 [n_nodes + 1]
  const std::byte* node_token_ = nullptr;     // u32 [n_nodes], token + 1
  const unsigned char* labels_ = nullptr;     // u8 [n_nodes]
  const char* token_bytes_ = nullptr;
  std::string_view charsmap_;
  double unk_score_ = 0;
  std::uint64_t n_token_bytes_ = 0;
  std::uint32_t n_tokens_ = 0, n_merges_ = 0, token_slot_mask_ = 0, merge_slot_mask_ = 0;
  std::uint32_t n_ids_ = 0, first_decoded_ = 0, n_nodes_ = 0, n_scores_ = 0;
};

}  // namespace quern::text
