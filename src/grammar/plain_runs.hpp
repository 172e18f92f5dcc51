// How many ordinary characters a set of ways takes whatever they are, as the inside of a string
// does. Whole subtrees of the vocabulary are then allowed without a walk.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "grammar/char_set.hpp"
#include "grammar/machine.hpp"

namespace quern::grammar {

// Ordinary: no control character, quote or backslash. What trie nodes are marked by.
bool is_plain(char32_t c);

inline constexpr std::uint8_t kNotPlain = 255;  // of a trie node: other tokens are below it
inline constexpr std::uint8_t kMaxPlain = 250;  // characters that are counted

class PlainRuns {
 public:
  explicit PlainRuns(Machine& machine);

  // At least so many ordinary characters, each of them any, at most kMaxPlain.
  std::uint8_t of(Machine::SetId set);
  void forget();  // the machine's sets have new numbers

 private:
  std::optional<Machine::SetId> next(Machine::SetId set);
  std::optional<Machine::SetId> make_next(Machine::SetId set);

  Machine& machine_;
  std::vector<ByteSequence> sequences_;  // of the ordinary characters
  std::vector<std::uint8_t> runs_;       // by set; kNotPlain: unknown
  std::unordered_map<Machine::SetId, std::optional<Machine::SetId>> nexts_;
};

}  // namespace quern::grammar
