// A byte-level vocabulary for the tests of text/: all 256 bytes and merges learned from a text.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_tables.hpp"

inline quern::text::Vocabulary learned_vocabulary(std::string_view text, std::size_t n_merges) {
  quern::text::Vocabulary out;
  for (int byte = 0; byte < 256; ++byte) out.tokens.emplace_back(1, static_cast<char>(byte));
  std::vector<std::int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  std::map<std::string, std::int32_t> known;
  while (out.merges.size() < n_merges) {
    std::map<std::pair<std::int32_t, std::int32_t>, int> counts;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) ++counts[{ids[i], ids[i + 1]}];
    auto best = counts.begin();
    for (auto it = counts.begin(); it != counts.end(); ++it)
      if (it->second > best->second) best = it;
    if (best == counts.end()) break;
    const auto [left, right] = best->first;
    const std::string joined =
        out.tokens[static_cast<std::size_t>(left)] + out.tokens[static_cast<std::size_t>(right)];
    const auto [entry, is_new] =
        known.emplace(joined, static_cast<std::int32_t>(out.tokens.size()));
    if (is_new) out.tokens.push_back(joined);
    out.merges.push_back({left, right, entry->second});
    std::vector<std::int32_t> next;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const bool pair = i + 1 < ids.size() && ids[i] == left && ids[i + 1] == right;
      next.push_back(pair ? entry->second : ids[i]);
      i += pair;
    }
    ids = std::move(next);
  }
  return out;
}

inline constexpr std::string_view kLearnedText =
    "the quick brown fox jumps over the lazy dog; the other foxes then hide in the brown hedge. "
    "aaaaaaaa bbbb "
    "he said that the theme of the thesis was there all the time, and that the rest is in the "
    "other theatre.";
