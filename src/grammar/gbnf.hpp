// GBNF, the grammar notation of the GGML tools: rules, alternatives, classes, groups, repetitions,
// tokens, comments. docs/STRUCTURED_OUTPUT.md has the syntax.
#pragma once

#include <string>
#include <string_view>

#include "grammar/grammar.hpp"

namespace quern::grammar {

// Input errors name `where`, line and column.
Grammar parse_gbnf(std::string_view text, const std::string& where);

}  // namespace quern::grammar
