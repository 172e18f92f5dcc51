// Tables of what the environment has: filters, tests, global functions, methods of values.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "jinja/interpreter.hpp"

namespace quern::jinja {

using FilterFunction = Value (*)(Interpreter&, const Value& subject, Arguments&);
using TestFunction = bool (*)(Interpreter&, const Value& subject, Arguments&);

struct Filter {
  std::string_view name;
  FilterFunction run;
};
struct Test {
  std::string_view name;
  TestFunction run;
};

std::span<const Filter> text_filters();
std::span<const Filter> layout_filters();
std::span<const Filter> number_filters();
std::span<const Filter> sequence_filters();
std::span<const Filter> selection_filters();
const Filter* find_filter(std::string_view name);
const Test* find_test(std::string_view name);
std::vector<std::string_view> filter_names();
std::vector<std::string_view> test_names();

// A global function or object; an undefined value when there is none.
Value find_global(Interpreter& run, std::string_view name);

// A method of a text, list, tuple, dict, range, loop, cycler... as a callable; undefined when the
// type has none of this name. `unsafe` is set for methods that the sandbox refuses.
Value find_method(Interpreter& run, const Value& of, std::string_view name, bool& unsafe);

using Method = Value (*)(Interpreter&, const Value& self, Arguments&);
struct MethodEntry {
  std::string_view name;
  Method run;  // null: exists in Python, not here
};
std::span<const MethodEntry> text_methods();
std::span<const MethodEntry> text_predicates();
std::span<const MethodEntry> split_methods();
std::span<const MethodEntry> sequence_methods(ObjectKind kind);

Value reversed_value(Interpreter& run, const Value& value);
Value lower_case(Interpreter& run, const Value& value);  // of a text; others as they are

// "%s of %d" % values, and "{} of {:>3}".format(...).
Value format_percent(Interpreter& run, const Text& format, const Value& values);
Value format_braces(Interpreter& run, const Text& format, Arguments& arguments);

}  // namespace quern::jinja
