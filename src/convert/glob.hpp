// Patterns of names in recipes and lists: '*' stands for any text, also none.
#pragma once

#include <string>
#include <string_view>

namespace quern::convert {

bool glob_match(std::string_view pattern, std::string_view text);

// ASCII lower case.
std::string lower(std::string_view text);

// Every `from` in `text` replaced by `to`.
std::string replaced(std::string_view text, std::string_view from, std::string_view to);

}  // namespace quern::convert
