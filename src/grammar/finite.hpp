// Finite automata over ranges of numbers (bytes, characters, or calls of rules): from
// nondeterministic to deterministic, products, and running one. Not here: expressions
// (nfa_builder.hpp), grammars (automaton.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quern::grammar {

using Symbol = std::uint32_t;

struct Edge {
  Symbol low, high;  // both included
  std::uint32_t to;
  bool operator==(const Edge&) const = default;
};

struct Nfa {
  enum class When : std::uint8_t { always, at_begin, at_end };
  struct Link {  // a step for nothing, maybe only at one end of the text
    std::uint32_t to;
    When when;
  };
  struct State {
    std::vector<Edge> edges;
    std::vector<Link> links;
  };
  std::vector<State> states;
  std::uint32_t start = 0, final = 1;
};

// State 0 is the start; what no edge takes is refused. Edges are sorted and do not overlap.
struct Dfa {
  struct State {
    std::vector<Edge> edges;
    bool final = false;
  };
  std::vector<State> states;

  bool empty() const { return states.empty(); }  // accepts nothing (after shrink())
  bool accepts(std::u32string_view text) const;
};

// An input error at `where` beyond max_states.
struct FiniteLimits {
  std::string where;
  std::size_t max_states;
};

Dfa determinize(const Nfa& nfa, const FiniteLimits& limits);

// Drops states from which nothing is accepted and unifies those with the same future (all of them
// where there are no loops).
void shrink(Dfa& dfa);

enum class Product { both, first_only };  // texts of both; of the first but not the second
Dfa product(const Dfa& a, const Dfa& b, Product kind, const FiniteLimits& limits);

}  // namespace quern::grammar
