#include "text/trie_build.hpp"

#include <algorithm>

namespace quern::text {

namespace {

std::vector<std::uint32_t> sorted_tokens(const Vocabulary& vocabulary) {
  std::vector<std::uint32_t> order;
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const auto set = [i](const std::vector<bool>& flags) { return i < flags.size() && flags[i]; };
    const bool hidden = set(vocabulary.decode_only) || set(vocabulary.whole_only);
    if (!vocabulary.tokens[i].empty() && !hidden) order.push_back(static_cast<std::uint32_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return vocabulary.tokens[a] < vocabulary.tokens[b];
  });
  const auto last = std::unique(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return vocabulary.tokens[a] == vocabulary.tokens[b];
  });
  order.erase(last, order.end());
  return order;
}

}  // namespace

Trie build_trie(const Vocabulary& vocabulary) {
  Trie trie;
  if (!vocabulary.trie) return trie;
  const std::vector<std::uint32_t> order = sorted_tokens(vocabulary);
  struct Range {  // tokens that share the bytes on the way to a node
    std::size_t begin, end, depth;
  };
  std::vector<Range> ranges = {{0, order.size(), 0}};
  trie.labels.push_back(0);
  for (std::size_t node = 0; node < ranges.size(); ++node) {
    auto [begin, end, depth] = ranges[node];
    const auto text = [&](std::size_t i) -> const std::string& {
      return vocabulary.tokens[order[i]];
    };
    const bool is_token = begin < end && text(begin).size() == depth;
    trie.node_token.push_back(is_token ? order[begin++] + 1 : 0);
    trie.first_child.push_back(static_cast<std::uint32_t>(ranges.size()));
    while (begin < end) {
      const char byte = text(begin)[depth];
      std::size_t stop = begin + 1;
      while (stop < end && text(stop)[depth] == byte) ++stop;
      trie.labels.push_back(static_cast<unsigned char>(byte));
      ranges.push_back({begin, stop, depth + 1});
      begin = stop;
    }
  }
  return trie;
}

std::string byte_token(unsigned char byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
}

}  // namespace quern::text
