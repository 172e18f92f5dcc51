// A sentencepiece model file (tokenizer.model, spiece.model, *.spm): its pieces and what it says of
// training and normalizing. Not here: what becomes of them (tokenizer_import_pieces.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"

namespace quern::convert {

enum class PieceType : std::int64_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

struct Piece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::normal;
};

// Defaults are those of the file format.
struct SentencepieceModel {
  std::vector<Piece> pieces;  // by id
  enum class Kind : std::int64_t { unigram = 1, bpe = 2, word = 3, character = 4 };
  Kind kind = Kind::unigram;
  bool byte_fallback = false, space_as_suffix = false;
  std::int64_t unk = 0, bos = 1, eos = 2, pad = -1;  // -1: none
  std::string unknown_text = " \xE2\x81\x87 ";       // what unknown reads back as
  std::string charsmap;
  bool add_prefix = true, trim = true, escape_spaces = true;
};

// Input errors for bytes that are not such a file.
SentencepieceModel parse_sentencepiece(base::Bytes bytes, std::string_view where);

// Whether the bytes look like one: the first field is a piece.
bool looks_like_sentencepiece(base::Bytes bytes);

}  // namespace quern::convert
