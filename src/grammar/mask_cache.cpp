#include "grammar/mask_cache.hpp"

#include <algorithm>
#include <bit>

#include "grammar/limits.hpp"

namespace quern::grammar {

MaskCache::MaskCache(const Automaton& automaton, const Vocabulary& vocabulary, Machine& machine)
    : automaton_(automaton),
      vocabulary_(vocabulary),
      machine_(machine),
      runs_(machine),
      path_(std::max(vocabulary.trie().max_depth(), vocabulary.first_trie().max_depth()) + 1) {}

const StateMask& MaskCache::of(std::uint32_t state) {
  const auto [found, added] = masks_.try_emplace(state);
  StateMask& mask = found->second;
  if (!added) return mask;
  Words words((vocabulary_.size() + 63) / 64, 0);
  walk_state(state, mask, words);
  std::size_t count = 0;
  for (const std::uint64_t word : words) count += static_cast<std::size_t>(std::popcount(word));
  if (count >= vocabulary_.size() / 64) {
    mask.words = std::move(words);
  } else {
    mask.ids.reserve(count);
    for (std::size_t i = 0; i < words.size(); ++i)
      for (std::uint64_t word = words[i]; word != 0; word &= word - 1)
        mask.ids.push_back(static_cast<std::int32_t>(i * 64) + std::countr_zero(word));
  }
  mask.leaves.shrink_to_fit();
  used_bytes_ += sizeof(StateMask) + 64 + mask.words.size() * 8 + mask.ids.size() * 4 +
                 mask.leaves.size() * 4;
  return mask;
}

bool MaskCache::take_whole(const Trie& trie, std::uint32_t node, Machine::SetId before,
                           Words& words) {
  const Trie::Node& root = trie.node(node);
  if (root.plain == kNotPlain || runs_.of(before) < root.plain) return false;
  for (const std::int32_t* id = trie.tokens_begin(node); id != trie.tokens_begin(root.end); ++id)
    set_bit(words, *id);
  return true;
}

void MaskCache::walk_state(std::uint32_t state, StateMask& mask, Words& words) {
  const Trie& trie = vocabulary_.trie();
  const std::bitset<256>& follow = automaton_.follow(automaton_.state(state).rule);
  path_[0] = machine_.alone({state, Machine::kBase});
  const std::uint32_t n = trie.size();
  for (std::uint32_t i = 0; i < n;) {
    const Trie::Node& node = trie.node(i);
    if (take_whole(trie, i, path_[node.depth - 1u], words)) {
      i = node.end;
      continue;
    }
    const Machine::SetId set = machine_.step(path_[node.depth - 1u], node.byte);
    if (set == Machine::kDead) {
      i = node.end;
      continue;
    }
    path_[node.depth] = set;
    for (const std::int32_t* id = trie.tokens_begin(i); id != trie.tokens_end(i); ++id)
      set_bit(words, *id);
    mask.need = std::max(mask.need, machine_.need(set));
    if (machine_.escaped(set)) {
      for (std::uint32_t child = i + 1; child < node.end; child = trie.node(child).end)
        if (follow.test(trie.node(child).byte)) mask.leaves.push_back(child);
    }
    i = machine_.configs(set).empty() ? node.end : i + 1;
  }
}

void MaskCache::add_subtree(const Trie& trie, std::uint32_t node, Machine::SetId before,
                            Words& words) {
  const std::uint32_t end = trie.node(node).end;
  path_[trie.node(node).depth - 1u] = before;
  for (std::uint32_t i = node; i < end;) {
    const Trie::Node& at = trie.node(i);
    if (take_whole(trie, i, path_[at.depth - 1u], words)) {
      i = at.end;
      continue;
    }
    const Machine::SetId set = machine_.step(path_[at.depth - 1u], at.byte);
    if (set == Machine::kDead) {
      i = at.end;
      continue;
    }
    path_[at.depth] = set;
    for (const std::int32_t* id = trie.tokens_begin(i); id != trie.tokens_end(i); ++id)
      set_bit(words, *id);
    ++i;
  }
}

void MaskCache::add_all(const Trie& trie, Machine::SetId before, Words& words) {
  for (std::uint32_t i = 0; i < trie.size(); i = trie.node(i).end)
    add_subtree(trie, i, before, words);
}

void MaskCache::trim() {
  if (used_bytes_ <= kMaxMaskBytes) return;
  masks_.clear();
  used_bytes_ = 0;
}

}  // namespace quern::grammar
