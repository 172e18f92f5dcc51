// Values as text: what printing them gives, Python's repr, JSON.
#pragma once

#include <string>

#include "jinja/interpreter.hpp"

namespace quern::jinja {

TextRef to_text(Interpreter& run, const Value& value);    // str(); markup becomes plain
TextRef soft_text(Interpreter& run, const Value& value);  // the same; markup stays markup
void append_text(Interpreter& run, TextBuilder& out, const Value& value);
void append_repr(Interpreter& run, TextBuilder& out, const Value& value);
std::string repr(Interpreter& run, const Value& value);  // for messages

std::string float_repr(double value);  // 1.0, 1e+20, inf

struct JsonStyle {
  bool ascii = false, sort_keys = false, lines = false;
  std::string indent;  // of one level, with `lines`
  std::string item_separator = ", ", key_separator = ": ";
};
void append_json(Interpreter& run, TextBuilder& out, const Value& value, const JsonStyle& style);

TextRef escape_html(Interpreter& run, const Value& value);  // markup; markup stays as it is

}  // namespace quern::jinja
