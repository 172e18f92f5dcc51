// Lengths, items, slices and attributes of values, as Python and the sandbox give them.
#pragma once

#include "jinja/interpreter.hpp"

namespace quern::jinja {

Value get_attribute(Interpreter& run, const Value& of, std::string_view name);  // of.name
Value get_item(Interpreter& run, const Value& of, const Value& key);            // of[key]

struct SliceBounds {
  Value start, stop, step;  // None where absent
};
Value get_slice(Interpreter& run, const Value& of, const SliceBounds& bounds);

std::int64_t length(Interpreter& run, const Value& value);  // a Fault for what has none
bool has_length(const Value& value);
bool is_iterable(const Value& value);

// A piece of a text, [begin, end) in bytes; markup stays markup.
TextRef piece(Interpreter& run, const Text& text, std::size_t begin, std::size_t end);

}  // namespace quern::jinja
