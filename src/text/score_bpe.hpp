// Byte-pair encoding without merges: of all neighbours whose joined text is a piece, the piece with
// the best score is made first, of equal scores the leftmost (sentencepiece's BPE). O(n log n).
#pragma once

#include "text/added_tokens.hpp"
#include "text/unknown.hpp"
#include "text/word_model.hpp"

namespace quern::text {

class ScoreBpe : public WordModel {
 public:
  // tables (with scores) must outlive it. user_defined: pieces that are taken whole, longest first.
  ScoreBpe(const TokenizerTables& tables, const Unknown& unknown,
           const std::vector<std::int32_t>& user_defined);
  void encode_word(std::string_view word, const IdSet* banned,
                   std::vector<std::int32_t>& out) const override;

 private:
  struct Symbol;
  struct Candidate;
  std::vector<Symbol> cut(std::string_view word, const IdSet* banned) const;
  bool candidate(std::string_view word, const std::vector<Symbol>& symbols, std::uint32_t at,
                 const IdSet* banned, Candidate& out) const;
  void join(std::string_view word, const IdSet* banned, std::vector<Symbol>& symbols) const;
  void append(std::string_view word, const std::vector<Symbol>& symbols, const IdSet* banned,
              std::vector<std::int32_t>& out) const;

  const TokenizerTables& tables_;
  Unknown unknown_;
  AddedMatcher user_defined_;
  std::size_t longest_ = 0;  // bytes of the longest piece: no longer text is looked up
};

}  // namespace quern::text
