// Numbers in texts, as Python's int() and float() read them.
#pragma once

#include <cstdint>
#include <string_view>

#include "jinja/value.hpp"

namespace quern::jinja {

bool to_double(const Value& v, double& out);  // a bool, int or float; a Fault beyond float's range

// White space around, a sign, single underscores between digits, a prefix of the base (base 0:
// any). False when it is none; a Fault beyond 64 bits.
bool parse_integer(std::string_view text, int base, std::int64_t& out);
bool parse_float(std::string_view text, double& out);  // inf and nan too

Value truncated(double value);  // int(); a Fault beyond 64 bits

}  // namespace quern::jinja
