// JSON schemas as grammars: every text that the grammar takes is JSON and valid, not every valid
// JSON is taken (docs/STRUCTURED_OUTPUT.md: order of properties, white space, numbers).
#pragma once

#include <string>
#include <string_view>

#include "grammar/grammar.hpp"

namespace quern::grammar {

// Input errors name the place in the schema as a JSON pointer.
Grammar json_schema_grammar(std::string_view text, const std::string& where);

}  // namespace quern::grammar
