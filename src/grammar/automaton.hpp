// A grammar as a pushdown automaton over bytes: one deterministic automaton per rule, whose calls
// push where to go on. Everything that cannot end in an accepted text is already gone. Immutable
// and independent of any vocabulary.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "grammar/grammar.hpp"

namespace quern::grammar {

class Automaton {
 public:
  struct ByteEdge {
    std::uint8_t low, high;
    std::uint32_t to;
  };
  struct Call {  // of the rule that starts at state `start`; then go on at `to`
    std::uint32_t start, to;
  };
  struct TokenEdge {
    std::uint32_t pattern, to;
  };
  struct State {
    std::uint32_t first_edge, first_call, first_token;
    std::uint32_t rule;
    std::uint16_t n_edges;
    bool final;
    bool tail;  // final and nothing else: a call that returns here need not return
    std::uint32_t n_calls, n_tokens;
    std::uint32_t need;  // most rules that must be open at once on the way to the end of this one
  };

  // Input errors: too large, left recursion, nothing matched, a rule that is used but not defined.
  explicit Automaton(const Grammar& grammar);

  const State& state(std::uint32_t id) const { return states_[id]; }
  const ByteEdge* edges(const State& state) const { return edges_.data() + state.first_edge; }
  const Call* calls(const State& state) const { return calls_.data() + state.first_call; }
  const TokenEdge* tokens(const State& state) const { return tokens_.data() + state.first_token; }

  std::uint32_t root() const { return root_; }
  std::size_t n_states() const { return states_.size(); }
  std::size_t n_rules() const { return names_.size(); }  // that are called
  const std::string& where() const { return where_; }
  const std::vector<TokenPattern>& token_patterns() const { return patterns_; }
  // Bytes of one class are never told apart.
  std::uint8_t byte_class(std::uint8_t byte) const { return classes_[byte]; }
  std::size_t n_classes() const { return n_classes_; }
  // Bytes that may come after what a rule matched, wherever it was called.
  const std::bitset<256>& follow(std::uint32_t rule) const { return follow_[rule]; }

 private:
  friend class AutomatonBuilder;
  std::string where_;
  std::vector<State> states_;
  std::vector<ByteEdge> edges_;
  std::vector<Call> calls_;
  std::vector<TokenEdge> tokens_;
  std::vector<TokenPattern> patterns_;
  std::vector<std::string> names_;
  std::vector<std::bitset<256>> follow_;
  std::array<std::uint8_t, 256> classes_{};
  std::size_t n_classes_ = 1;
  std::uint32_t root_ = 0;
};

}  // namespace quern::grammar
