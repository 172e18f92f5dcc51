// Which tokens may come next in one answer: a grammar's automaton over a vocabulary. Tokens that are
// decided within the rule at hand are looked up once per state of the automaton and remembered;
// only those that leave it are checked against the stack, every time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "grammar/automaton.hpp"
#include "grammar/vocabulary.hpp"
#include "sampling/constraint.hpp"

namespace quern::grammar {

class Matcher : public sampling::Constraint {
 public:
  // Both must outlive it. Input error for a token of the grammar that the vocabulary lacks.
  Matcher(const Automaton& automaton, const Vocabulary& vocabulary);
  ~Matcher() override;

  // Input error when no token of the vocabulary continues the answer.
  std::span<const std::uint64_t> allowed() override;
  void accept(std::int32_t id) override;
  void restart() override;

  bool may_end() const;   // the answer may end here
  bool finished() const;  // and nothing else

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// How far a text follows a grammar.
struct TextMatch {
  std::size_t bytes = 0;  // read until one did not fit
  bool complete = false;  // all were read, and the text may end there
};
TextMatch match_text(const Automaton& automaton, std::string_view text);

}  // namespace quern::grammar
