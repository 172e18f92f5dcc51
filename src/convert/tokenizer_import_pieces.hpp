// Pieces with scores, from sentencepiece models and from GGUF, on their way to a tokenizer that
// cuts text as sentencepiece does. Not for other folders.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "convert/tokenizer_import_parts.hpp"
#include "convert/tokenizer_import_spm.hpp"

namespace quern::convert {

// Everything but the pieces themselves: model, normalizer, decoder, character map.
std::optional<UnsupportedTokenizer> describe_pieces(const SentencepieceModel& model,
                                                    std::string_view where, ModelImport& out);

// And the pieces, with their places as ids. Control pieces and the unknown one become added tokens.
std::optional<UnsupportedTokenizer> import_pieces(const SentencepieceModel& model,
                                                  std::string_view where, ModelImport& out);

std::vector<double> piece_scores(const SentencepieceModel& model);
bool is_hidden(PieceType type);  // text never becomes it by way of the model

}  // namespace quern::convert
