// Texts of options: backslash escapes, and lists of texts in files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::tool {

// \n \t \r \" \' \\ as in C; any other backslash stays.
std::string unescaped(std::string_view text);

// The lines of a file ("-": standard input), with escapes; empty lines are none.
std::vector<std::string> read_text_lines(const std::string& path);

}  // namespace quern::tool
