// The tokens that one state of an automaton takes, as far as the rule at hand decides it. Kept per
// state; what leaves the rule is kept as places in the trie, where the stack goes on.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "grammar/machine.hpp"
#include "grammar/plain_runs.hpp"
#include "grammar/vocabulary.hpp"

namespace quern::grammar {

using Words = std::vector<std::uint64_t>;

inline void set_bit(Words& words, std::int32_t id) {
  words[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (static_cast<std::size_t>(id) % 64);
}

struct StateMask {
  Words words;                        // one bit per id; empty when few are allowed
  std::vector<std::int32_t> ids;      // those few
  std::vector<std::uint32_t> leaves;  // nodes of the trie that come after the rule has ended
  std::uint32_t need = 0;             // depth of the stack that its tokens may need
};

class MaskCache {
 public:
  MaskCache(const Automaton& automaton, const Vocabulary& vocabulary, Machine& machine);

  // Valid until trim().
  const StateMask& of(std::uint32_t state);
  // Sets the bits of all tokens in the subtree at `node` that `before`, the set before it, takes.
  void add_subtree(const Trie& trie, std::uint32_t node, Machine::SetId before, Words& words);
  // The same for the whole trie.
  void add_all(const Trie& trie, Machine::SetId before, Words& words);
  void trim();  // forgets all when it has grown too large
  void forget_sets() { runs_.forget(); }  // the machine's sets have new numbers

 private:
  // Allows the whole subtree at `node` when `before` takes any ordinary characters.
  bool take_whole(const Trie& trie, std::uint32_t node, Machine::SetId before, Words& words);
  void walk_state(std::uint32_t state, StateMask& mask, Words& words);

  const Automaton& automaton_;
  const Vocabulary& vocabulary_;
  Machine& machine_;
  PlainRuns runs_;
  std::unordered_map<std::uint32_t, StateMask> masks_;
  std::vector<Machine::SetId> path_;  // sets along the trie, by depth
  std::size_t used_bytes_ = 0;
};

}  // namespace quern::grammar
