// Single characters as Python's str sees them: white space, letters, digits, cases. Not here:
// strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace quern::jinja {

struct Character {
  std::uint32_t code;
  std::size_t bytes;
};
// The character at `at` (< size) of valid UTF-8; a broken byte is a character of one byte.
Character character_at(std::string_view text, std::size_t at);
std::size_t character_before(std::string_view text,
                             std::size_t end);  // where the one before `end` begins
void append_character(std::string& out, std::uint32_t code);

bool is_space(std::uint32_t code);
bool is_line_end(std::uint32_t code);  // of str.splitlines
bool is_alpha(std::uint32_t code);
bool is_decimal(std::uint32_t code);
bool is_numeric(std::uint32_t code);  // digits of any kind
bool is_upper(std::uint32_t code);
bool is_lower(std::uint32_t code);
bool is_title(std::uint32_t code);
bool is_word(std::uint32_t code);       // \w of Python's re
bool is_printable(std::uint32_t code);  // str.isprintable: what repr leaves as it is

enum class Case { upper, lower, title, fold };
// Full mapping of one character: up to three characters.
void append_in_case(std::string& out, std::uint32_t code, Case to);

bool valid_utf8(std::string_view text);

}  // namespace quern::jinja
