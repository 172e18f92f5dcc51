// A grammar as GBNF, for people who want to see what became of a schema or a pattern.
#pragma once

#include <string>

#include "grammar/grammar.hpp"

namespace quern::grammar {

// Rules that the root needs, the root first. Read again it is the same language.
std::string print_gbnf(const Grammar& grammar);

}  // namespace quern::grammar
