// What filters and methods of texts share. Every result keeps the marks of the bytes it came from.
#pragma once

#include <functional>
#include <vector>

#include "jinja/characters.hpp"
#include "jinja/interpreter.hpp"

namespace quern::jinja {

TextRef in_case(Interpreter& run, const Text& text, Case to);
TextRef capitalized(Interpreter& run, const Text& text);
// Character by character: what a function makes of each.
TextRef mapped(Interpreter& run, const Text& text,
               const std::function<void(std::string&, const Character&)>& map);

// Without the characters of `chars` (null: white space) at its ends.
TextRef stripped(Interpreter& run, const Text& text, const Text* chars, bool left, bool right);

// `count` < 0: all.
TextRef replaced(Interpreter& run, const Text& text, const Text& old, const Text& fresh,
                 std::int64_t count);

// Where `word` is, from `from` on; npos for nowhere. Linear.
std::size_t find_bytes(std::string_view text, std::string_view word, std::size_t from);
std::size_t find_bytes_last(std::string_view text, std::string_view word);

struct LineRange {
  std::size_t begin, end, next;  // the line, and where the one after it begins
};
std::vector<LineRange> split_lines(const Text& text);  // str.splitlines

TextRef joined(Interpreter& run, const Text& separator,
               const std::vector<Value>& parts);  // of texts
TextRef padded(Interpreter& run, const Text& text, std::size_t left, std::size_t right,
               std::string_view fill = " ");

TextRef stripped_of_tags(Interpreter& run, const Text& text);
void append_url_quoted(TextBuilder& out, const Text& text, bool query);

}  // namespace quern::jinja
