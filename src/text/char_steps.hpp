// Normalizer steps that look at one character (or grapheme cluster) at a time. `start_kept` becomes
// false when the character that began the text is gone.
#pragma once

#include <string>
#include <string_view>

#include "text/added_tokens.hpp"
#include "text/charsmap.hpp"

namespace quern::text {

std::string lowercase(std::string_view text);  // without context: no final sigma
std::string strip_accents(std::string_view text, bool& start_kept);  // marks, as the reference knows them
std::string drop_marks(std::string_view text,
                       bool& start_kept);  // non-spacing ones, of decomposed text
std::string clean_text(std::string_view text, bool& start_kept);  // controls; white space -> ' '
std::string nmt_clean(std::string_view text, bool& start_kept);
std::string space_ideographs(std::string_view text);  // a space on both sides
std::string_view strip_left(std::string_view text);   // white space
std::string_view strip_right(std::string_view text);

// Each grapheme cluster of less than 6 bytes, else each character, that starts with a key becomes
// what the shortest such key says, whole.
std::string apply_charsmap(const Charsmap& map, std::string_view text);

// The normalizer of sentencepiece.
struct SentencepieceRules {
  const Charsmap* map;               // or null
  const AddedMatcher& user_defined;  // texts that stay as they are
  bool prefix;                       // a space symbol in front
  bool trim;                         // runs of spaces become one, none at the ends
};
std::string apply_sentencepiece(const SentencepieceRules& rules, std::string_view text);

}  // namespace quern::text
