// A compiled character map (sentencepiece): a double-array trie from text to its replacement. The
// map itself only; the steps that apply it are in text/charsmap_steps.hpp.
#pragma once

#include <optional>
#include <string_view>

namespace quern::text {

class Charsmap {
 public:
  // bytes must outlive it. Input errors for a map that does not hold together; every look-up is
  // bounded besides.
  Charsmap(std::string_view bytes, std::string_view where);

  struct Match {
    std::size_t bytes;  // of the text
    std::string_view replacement;
  };
  // Of the keys that text starts with the longest, or the shortest.
  std::optional<Match> longest(std::string_view text) const { return find(text, true); }
  std::optional<Match> shortest(std::string_view text) const { return find(text, false); }

 private:
  std::optional<Match> find(std::string_view text, bool longest) const;
  std::optional<std::uint32_t> unit(std::size_t index) const;

  std::string_view units_;  // u32 each
  std::string_view texts_;  // ended by NUL
};

}  // namespace quern::text
