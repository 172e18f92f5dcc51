// Random texts of a grammar, to see what it allows: bytes by chance at first, then the shortest way
// to an end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grammar/automaton.hpp"

namespace quern::grammar {

class RandomText {
 public:
  explicit RandomText(const Automaton& automaton);

  // Seeds give the same text everywhere. After about `length` bytes the shortest end is taken.
  // Input error when the grammar needs tokens, or more rules open at once than are allowed.
  std::string make(std::uint64_t seed, std::size_t length) const;

 private:
  const Automaton& automaton_;
  std::vector<std::uint64_t> to_end_;  // least bytes from a state to the end of its rule
};

}  // namespace quern::grammar
