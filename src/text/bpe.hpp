// Byte-pair encoding of one word over mapped tables: lowest rank first, of equal ranks the
// leftmost.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "text/tokenizer_tables.hpp"

namespace quern::text {

class Bpe {
 public:
  struct Options {
    bool ignore_merges = false;          // a word that is a token is taken as it is
    bool fuse_unk = false;               // neighbouring unknown bytes become one unk_id
    std::optional<std::int32_t> unk_id;  // absent: bytes without a token are dropped
  };
  using IdSet = std::unordered_set<std::int32_t>;

  // tables must outlive it.
  Bpe(const TokenizerTables& tables, const Options& options);

  // Appends the ids of `word`. `banned` (or null): ids that must not come out; their parts do.
  void encode_word(std::string_view word, const IdSet* banned,
                   std::vector<std::int32_t>& out) const;

  // The merging alone, without the look-up of the whole word. O(n log n).
  void merge_word(std::string_view word, const IdSet* banned, std::vector<std::int32_t>& out) const;

 private:
  void initial_symbols(std::string_view word, std::vector<std::int32_t>& out) const;
  TokenizerTables::MergeResult merge_of(std::int32_t left, std::int32_t right,
                                        const IdSet* banned) const;
  void merge_short(std::int32_t* symbols, std::size_t count, const IdSet* banned,
                   std::vector<std::int32_t>& out) const;
  void merge_long(std::vector<std::int32_t>& symbols, const IdSet* banned,
                  std::vector<std::int32_t>& out) const;

  const TokenizerTables& tables_;
  Options options_;
  std::array<std::int32_t, 256> byte_ids_{};
};

}  // namespace quern::text
