// UTF-8 decoding and the character classes that tokenizers ask for: letters, numbers, white space,
// words. Bytes that are not UTF-8 count as one character each of class other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace quern::text {

enum class CharClass : std::uint8_t {
  other,
  letter,
  number,
  space,
  newline
};  // newline: \r and \n only

struct Char {
  std::uint32_t code;   // kInvalid for a byte that is not part of a character
  std::uint32_t bytes;  // 1..4
  static constexpr std::uint32_t kInvalid = 0xFFFFFFFF;
};

// The character at `at` (< text.size()). Overlong forms, surrogates and values above U+10FFFF are
// invalid.
Char decode_char(std::string_view text, std::size_t at);
void append_utf8(std::string& out, std::uint32_t code);

CharClass class_of_code(std::uint32_t code);
bool is_space_code(std::uint32_t code);  // White_Space
bool is_word_code(std::uint32_t code);   // \w of Rust's regex: Alphabetic, M, Nd, Pc, Join_Control
bool is_mark_code(std::uint32_t code);   // Mn, Mc, Me
bool is_unknown_to_normalizers(
    std::uint32_t code);                           // the reference's normal forms leave it as it is
bool is_punctuation_code(std::uint32_t code);      // of the reference's Punctuation step
bool is_dropped_control(std::uint32_t code);       // of the clean_text step
bool is_dropped_mark(std::uint32_t code);          // of the strip_marks step
bool is_accent_code(std::uint32_t code);           // of the strip_accents step
bool is_ideograph_code(std::uint32_t code);        // of the space_ideographs step
int script_of_code(std::uint32_t code);            // of the scripts step; -1 for characters of none
std::uint32_t lowercase_code(std::uint32_t code);  // one character to one (U+0130 is the caller's)

// Class and length of the character at `at`; the table look-up that scanners run on.
struct ClassedChar {
  CharClass kind;
  std::uint32_t bytes;
};
ClassedChar classed_char(std::string_view text, std::size_t at);

// The longest valid UTF-8 prefix of text[at..]: its length.
std::size_t valid_utf8_prefix(std::string_view text, std::size_t at);

}  // namespace quern::text
