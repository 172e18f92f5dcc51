// Digits of numbers, for both ways of formatting.
#pragma once

#include <cstdint>
#include <string>

namespace quern::jinja {

std::string digits_of(std::int64_t value, char type);  // of its magnitude: d x X o b
// Of its magnitude, as printf's e f g (and capitals); at most 500 digits of precision.
std::string float_digits(double value, char type, int precision, bool alternate);

}  // namespace quern::jinja
