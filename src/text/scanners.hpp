// Hand-written equivalents of the pre-tokenizer regexes that most models use: each finds the end of
// the piece that starts at `at`. Linear: a character is looked at a bounded number of times. Not
// here: other patterns (text/regex.hpp), which are also the oracle of these in the tests.
#pragma once

#include <cstddef>
#include <string_view>

namespace quern::text {

// End of the piece at `at` < text.size(); always > at.
using Scanner = std::size_t (*)(std::string_view text, std::size_t at);

// "gpt2", "llama3", "qwen2", "digits" (every \p{N} alone), "digit_runs"; nullptr for other names.
// "smollm" is digits followed by gpt2 and is taken apart by the pre-tokenizer.
Scanner find_scanner(std::string_view name);

// The regex (as tokenizer.json spells it) that the scanner is equal to; "" for other names.
std::string_view scanner_pattern(std::string_view name);
// The other way: name of the scanner for a pattern, "" when there is none.
std::string_view scanner_for_pattern(std::string_view pattern);

}  // namespace quern::text
