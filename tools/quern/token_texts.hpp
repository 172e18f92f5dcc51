// What each token of a vocabulary adds to the text of an answer: the bridge from tokenizers to
// grammars, which know only bytes.
#pragma once

#include "contract/contract.hpp"
#include "grammar/vocabulary.hpp"
#include "text/tokenizer.hpp"

namespace quern::tool {

// Of ids [0, n_ids); `ends` end an answer. Control tokens have no text. Input error for a decoder
// whose text of a token depends on what comes after it.
grammar::TokenTexts token_texts(const text::Tokenizer& tokenizer, const contract::TokenizerDescription& description,
                                std::size_t n_ids, std::vector<std::int32_t> ends);

}  // namespace quern::tool
