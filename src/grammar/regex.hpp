// Regular expressions of the documented subset (docs/STRUCTURED_OUTPUT.md), as automata over
// characters. What goes beyond regular languages (look-around, backreferences) is refused by name.
#pragma once

#include <string>
#include <string_view>

#include "grammar/finite.hpp"
#include "grammar/grammar.hpp"

namespace quern::grammar {

// What of a text a pattern describes: all of it, or, but for ^ and $, some part of it.
enum class Matches : std::uint8_t { whole, part };

// `where` names the pattern's place in errors.
Dfa regex_automaton(std::string_view pattern, Matches matches, const std::string& where);

// The grammar of --regex: all of the answer matches.
Grammar regex_grammar(std::string_view pattern, const std::string& where);

// The automaton as an expression; spelling(set) is the expression of one character of a set.
template <class Spelling>
NodeId automaton_node(Grammar& grammar, const Dfa& dfa, Spelling spelling) {
  if (dfa.empty()) return grammar.nothing();
  const auto place = [](std::uint32_t state) { return state == 0 ? 0 : state + 1; };  // 1 is the end
  std::vector<Arc> arcs;
  for (std::uint32_t from = 0; from < dfa.states.size(); ++from) {
    const auto& edges = dfa.states[from].edges;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      CharSet set;
      bool first = true;
      for (std::size_t j = 0; j < edges.size(); ++j) {
        if (edges[j].to != edges[i].to) continue;
        first = first && j >= i;
        set.add(edges[j].low, edges[j].high);
      }
      if (first) arcs.push_back({place(from), place(edges[i].to), spelling(set)});
    }
    if (dfa.states[from].final) arcs.push_back({place(from), 1, std::nullopt});
  }
  return grammar.network(static_cast<std::uint32_t>(dfa.states.size() + 1), std::move(arcs));
}

}  // namespace quern::grammar
