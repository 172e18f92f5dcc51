// Prints base::Json the way model.json is written: two spaces, one idea a line. A value whose text
// fits in 120 columns stays on one line; so do arrays of numbers and the records of a list, however
// long. Byte-stable: numbers are the shortest text that reads back to the same bits, in any locale.
#pragma once

#include <string>

#include "base/json_reader.hpp"

namespace quern::contract {

std::string print_json(const base::Json& value);         // ends with a newline
std::string print_json_inline(const base::Json& value);  // one line, no newline

// A float as a Json number whose decimals are those of the float, not of the double it becomes.
base::Json json_float(float value);

// Integral values without a fraction ("0", not "0.0").
base::Json json_plain_number(double value);

}  // namespace quern::contract
