#include "text/word_model.hpp"

#include "base/error.hpp"
#include "base/strings.hpp"
#include "text/bpe.hpp"
#include "text/score_bpe.hpp"
#include "text/unigram.hpp"
#include "text/word_piece.hpp"

namespace quern::text {

namespace {

Unknown unknown_of(const contract::TokenizerDescription& d) {
  return {d.unk_id, d.byte_fallback};
}

}  // namespace

std::unique_ptr<WordModel> make_word_model(const contract::TokenizerDescription& d,
                                           const TokenizerTables& tables, std::string_view where) {
  const auto require = [&](bool holds, std::string_view what) {
    if (!holds) base::reject(where, base::cat("tokenizer tables without ", what));
  };
  if (d.model == "bpe")
    return std::make_unique<Bpe>(tables, Bpe::Options{.ignore_merges = d.ignore_merges,
                                                      .fuse_unk = d.fuse_unk,
                                                      .unk_id = d.unk_id,
                                                      .byte_level = d.byte_level,
                                                      .byte_fallback = d.byte_fallback,
                                                      .subword_prefix = d.subword_prefix,
                                                      .word_suffix = d.word_suffix});
  if (d.byte_level) base::reject(where, base::cat("byte_level is for bpe, not for ", d.model));
  if (d.model == "wordlevel") return std::make_unique<WordLevel>(tables, d.unk_id);
  if (d.model == "score_bpe") {
    require(tables.has_scores(), "scores");
    return std::make_unique<ScoreBpe>(tables, unknown_of(d), d.user_defined);
  }
  if (d.model == "unigram") {
    require(tables.has_scores() && tables.has_trie(), "scores and a trie");
    if (d.score_sum == "f32") return std::make_unique<Unigram<float>>(tables, unknown_of(d));
    return std::make_unique<Unigram<double>>(tables, unknown_of(d));
  }
  if (d.model == "wordpiece") {
    require(tables.has_trie(), "a trie");
    return std::make_unique<WordPiece>(
        tables, WordPiece::Options{d.unk_id, d.subword_prefix, d.max_word_chars});
  }
  base::reject(where, "tokenizer model not supported", base::printable(d.model),
               "bpe, score_bpe, unigram, wordpiece or wordlevel");
}

}  // namespace quern::text
