// Byte-pair encoding of one word over mapped tables: lowest rank first, of equal ranks the
// leftmost. A symbol is a byte or a character. Not here: merging by score (text/score_bpe.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_tables.hpp"
#include "text/word_model.hpp"

namespace quern::text {

class Bpe : public WordModel {
 public:
  struct Options {
    bool ignore_merges = false;               // a word that is a token is taken as it is
    bool fuse_unk = false;                    // neighbouring unknown symbols become one unk_id
    std::optional<std::int32_t> unk_id = {};  // absent: symbols without a token are dropped
    bool byte_level = true;                   // a symbol is a byte
    bool byte_fallback = false;  // characters without a token become the tokens of bytes
    std::string subword_prefix = {},
                word_suffix = {};  // of all characters but the first; of the last
  };

  // tables must outlive it.
  Bpe(const TokenizerTables& tables, Options options);

  void encode_word(std::string_view word, const IdSet* banned,
                   std::vector<std::int32_t>& out) const override;

  // The merging alone, without the look-up of the whole word. O(n log n).
  void merge_word(std::string_view word, const IdSet* banned, std::vector<std::int32_t>& out) const;

 private:
  std::int32_t id_of_symbol(std::string_view word, std::size_t at, std::size_t bytes) const;
  void initial_symbols(std::string_view word, std::vector<std::int32_t>& out) const;
  std::size_t byte_symbols(std::string_view word, std::int32_t* symbols) const;
  TokenizerTables::MergeResult merge_of(std::int32_t left, std::int32_t right,
                                        const IdSet* banned) const;
  void merge_short(std::int32_t* symbols, std::size_t count, const IdSet* banned,
                   std::vector<std::int32_t>& out) const;
  void merge_long(std::vector<std::int32_t>& symbols, const IdSet* banned,
                  std::vector<std::int32_t>& out) const;

  const TokenizerTables& tables_;
  Options options_;
  bool plain_;  // no affixes: the text of a word is the text of its token
};

}  // namespace quern::text
