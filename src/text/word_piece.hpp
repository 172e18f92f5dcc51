// Models that look a word up: WordPiece takes the longest piece again and again, WordLevel the
// word.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "text/word_model.hpp"

namespace quern::text {

class WordPiece : public WordModel {
 public:
  struct Options {
    std::optional<std::int32_t> unk_id;  // of a word that the pieces do not cover; absent: dropped
    std::string subword_prefix;          // of the pieces behind the first
    std::size_t max_word_chars;          // longer words are unknown
  };
  // tables (with a trie) must outlive it.
  WordPiece(const TokenizerTables& tables, Options options);
  void encode_word(std::string_view word, const IdSet* banned,
                   std::vector<std::int32_t>& out) const override;

 private:
  struct Match {
    std::int32_t token;
    std::size_t bytes;
  };
  Match longest(std::int64_t node, std::string_view text, const IdSet* banned) const;

  const TokenizerTables& tables_;
  Options options_;
  std::int64_t inner_node_ = 0;  // where the pieces behind the first start; -1: there are none
};

class WordLevel : public WordModel {
 public:
  WordLevel(const TokenizerTables& tables, std::optional<std::int32_t> unk_id)
      : tables_(tables), unk_id_(unk_id) {}
  void encode_word(std::string_view word, const IdSet* banned,
                   std::vector<std::int32_t>& out) const override;

 private:
  const TokenizerTables& tables_;
  std::optional<std::int32_t> unk_id_;
};

}  // namespace quern::text
