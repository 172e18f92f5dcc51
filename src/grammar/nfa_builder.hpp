// Expressions to nondeterministic finite automata: over bytes with calls of rules (for a grammar's
// automaton), or over characters (for patterns, whose automata are then intersected).
#pragma once

#include <vector>

#include "grammar/finite.hpp"
#include "grammar/grammar.hpp"

namespace quern::grammar {

// Symbols beyond all characters: calls of rules, tokens.
inline constexpr Symbol kCallSymbol = 0x0100'0000;
inline constexpr Symbol kTokenSymbol = 0x0200'0000;

enum class Alphabet : std::uint8_t { bytes, characters };

class NfaBuilder {
 public:
  // inlined[rule]: its calls are replaced by its expression (no cycles among these). May be empty.
  NfaBuilder(const Grammar& grammar, Alphabet alphabet, const std::vector<std::uint8_t>& inlined,
             const FiniteLimits& limits);

  Nfa build(NodeId node);

 private:
  std::uint32_t add_state();
  void link(std::uint32_t from, std::uint32_t to, Nfa::When when = Nfa::When::always);
  void edge(std::uint32_t from, Symbol low, Symbol high, std::uint32_t to);
  void add(NodeId id, std::uint32_t from, std::uint32_t to);
  void add_text(const std::string& text, std::uint32_t from, std::uint32_t to);
  void add_chars(const CharSet& set, std::uint32_t from, std::uint32_t to);
  void add_sequence(const std::vector<NodeId>& children, std::uint32_t from, std::uint32_t to);
  void add_repeat(const Node& node, std::uint32_t from, std::uint32_t to);
  void add_network(const Node& node, std::uint32_t from, std::uint32_t to);
  void add_rule(RuleId rule, std::uint32_t from, std::uint32_t to);
  bool has_anchor(NodeId id) const;
  void add_copy(const Dfa& dfa, std::uint32_t from, std::uint32_t to);

  const Grammar& grammar_;
  Alphabet alphabet_;
  const std::vector<std::uint8_t>& inlined_;
  const FiniteLimits& limits_;
  Nfa nfa_;
};

}  // namespace quern::grammar
