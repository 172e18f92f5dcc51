// The unigram model: of all ways to cut a word into pieces the one with the best sum of scores
// (Viterbi over the trie, O(n x longest piece)). Neighbouring unknown characters are one unknown.
#pragma once

#include "text/unknown.hpp"
#include "text/word_model.hpp"

namespace quern::text {

// Real: in what precision sums are kept, which decides between cuts that are nearly equal.
template <class Real>
class Unigram : public WordModel {
 public:
  // tables (with scores and a trie) must outlive it.
  Unigram(const TokenizerTables& tables, const Unknown& unknown);
  void encode_word(std::string_view word, const IdSet* banned,
                   std::vector<std::int32_t>& out) const override;

 private:
  struct End;  // the best way to reach a place of the word
  void extend(std::string_view word, std::size_t at, const IdSet* banned,
              std::vector<End>& ends) const;
  void append(std::string_view piece, std::int32_t token, const IdSet* banned,
              std::vector<std::int32_t>& out) const;

  const TokenizerTables& tables_;
  Unknown unknown_;
  Real unk_score_;
};

extern template class Unigram<float>;
extern template class Unigram<double>;

}  // namespace quern::text
