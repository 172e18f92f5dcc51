// The values of the keyword "format" that have an exact language: as regular expressions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quern::grammar {

// The pattern of all of the text, or nothing for an unknown format.
std::optional<std::string> format_pattern(std::string_view name);

std::string format_names();  // for messages

}  // namespace quern::grammar
