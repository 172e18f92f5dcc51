// The automata of a grammar's rules while they are made into one: which rules end, which match
// nothing, which begin with themselves, and which are small enough to be written out.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/finite.hpp"
#include "grammar/grammar.hpp"

namespace quern::grammar {

// Rules whose calls are replaced by their expression: small, without loops, not recursive. A byte
// of a token then never leaves the automaton in which it is looked up.
std::vector<std::uint8_t> rules_to_inline(const Grammar& grammar);

// One automaton per rule that the root needs; the others stay empty. Calls of rules that match no
// finite text are gone. Input errors: nothing matched, left recursion.
std::vector<Dfa> rule_automata(const Grammar& grammar, const std::vector<std::uint8_t>& inlined);

}  // namespace quern::grammar
