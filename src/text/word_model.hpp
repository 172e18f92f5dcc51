// What turns one word of normalized, pre-tokenized text into ids: the model of a tokenizer. Not
// here: cutting text into words (text/pretokenizer.hpp), added tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "contract/contract.hpp"
#include "text/tokenizer_tables.hpp"

namespace quern::text {

using IdSet = std::unordered_set<std::int32_t>;

class WordModel {
 public:
  virtual ~WordModel() = default;
  // Appends the ids of `word`. `banned` (or null): ids that must not come out; their parts do.
  virtual void encode_word(std::string_view word, const IdSet* banned,
                           std::vector<std::int32_t>& out) const = 0;
};

// By the description's model; tables must outlive it. Input errors for tables that lack what the
// model needs.
std::unique_ptr<WordModel> make_word_model(const contract::TokenizerDescription& description,
                                           const TokenizerTables& tables, std::string_view where);

}  // namespace quern::text
