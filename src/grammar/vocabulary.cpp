#include "grammar/vocabulary.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "grammar/char_set.hpp"
#include "grammar/plain_runs.hpp"

namespace quern::grammar {

namespace {

constexpr std::size_t kMaxTokenBytes = 4096;
constexpr std::uint8_t kPoisoned = 254;  // while the trie is built

using Entry = std::pair<std::string_view, std::int32_t>;

bool by_id(const std::pair<std::int32_t, std::string>& entry, std::int32_t id) {
  return entry.first < id;
}

}  // namespace

Trie::Trie(std::vector<Entry> tokens) {
  std::sort(tokens.begin(), tokens.end());
  nodes_.clear();
  std::vector<std::uint32_t> path;  // nodes of the last token
  std::string_view last;
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back())
      nodes_[path.back()].end = static_cast<std::uint32_t>(nodes_.size());
  };
  for (const auto& [text, id] : tokens) {
    if (text.empty()) continue;
    std::size_t common = 0;
    while (common < last.size() && common < text.size() && last[common] == text[common]) ++common;
    close(common);
    for (std::size_t i = common; i < text.size(); ++i) {
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back({0, static_cast<std::uint32_t>(ids_.size()), static_cast<std::uint16_t>(i + 1),
                        static_cast<std::uint8_t>(text[i]), kNotPlain});
    }
    mark_plain(text, path);
    ids_.push_back(id);
    max_depth_ = std::max(max_depth_, text.size());
    last = text;
  }
  close(0);
  nodes_.push_back({0, static_cast<std::uint32_t>(ids_.size()), 0, 0, kNotPlain});
  for (Node& node : nodes_)
    if (node.plain == kPoisoned) node.plain = kNotPlain;
}

// Marks the nodes where a character of the text begins: by the number of characters from there on
// when all are ordinary, else for good.
void Trie::mark_plain(std::string_view text, const std::vector<std::uint32_t>& path) {
  std::vector<std::size_t> starts;  // of the ordinary characters since the last other one
  std::size_t at = 0;
  const auto poison = [&] {
    for (const std::size_t start : starts) nodes_[path[start]].plain = kPoisoned;
    starts.clear();
  };
  while (at < text.size()) {
    const std::size_t start = at;
    char32_t c = 0;
    const bool whole = next_char(text, at, c);
    if (!whole) ++at;
    starts.push_back(start);
    if (!whole || !is_plain(c)) poison();
  }
  if (starts.size() > kMaxPlain) poison();
  for (std::size_t i = 0; i < starts.size(); ++i) {
    std::uint8_t& plain = nodes_[path[starts[i]]].plain;
    const auto left = static_cast<std::uint8_t>(starts.size() - i);
    if (plain != kPoisoned) plain = plain == kNotPlain ? left : std::max(plain, left);
  }
}

Vocabulary::Vocabulary(TokenTexts texts) : texts_(std::move(texts)) {
  std::vector<Entry> tokens;
  for (std::size_t id = 0; id < texts_.texts.size(); ++id) {
    if (texts_.texts[id].size() > kMaxTokenBytes)
      base::reject("tokenizer", base::cat("token ", id, " is too long for structured output"),
                   base::cat(texts_.texts[id].size(), " bytes"), base::cat("at most ", kMaxTokenBytes));
    tokens.emplace_back(texts_.texts[id], static_cast<std::int32_t>(id));
  }
  std::erase_if(texts_.ends, [&](std::int32_t id) {
    return id < 0 || static_cast<std::size_t>(id) >= texts_.texts.size();
  });
  if (texts_.ends.empty())
    base::reject("model", "has no token that ends an answer, which structured output needs");
  for (const std::int32_t id : texts_.ends) tokens[static_cast<std::size_t>(id)].first = {};
  trie_ = Trie(tokens);
  if (texts_.first.empty()) return;
  std::sort(texts_.first.begin(), texts_.first.end());
  for (const auto& [id, text] : texts_.first)
    if (!is_end(id)) tokens[static_cast<std::size_t>(id)].first = text;
  first_trie_ = Trie(std::move(tokens));
}

const std::string& Vocabulary::first_text(std::int32_t id) const {
  const auto found = std::lower_bound(texts_.first.begin(), texts_.first.end(), id, by_id);
  return found != texts_.first.end() && found->first == id ? found->second : text(id);
}

bool Vocabulary::is_end(std::int32_t id) const {
  return std::find(texts_.ends.begin(), texts_.ends.end(), id) != texts_.ends.end();
}

std::int32_t Vocabulary::id_of(std::string_view spelling) const {
  const auto found = texts_.spellings.find(spelling);
  return found == texts_.spellings.end() ? -1 : found->second;
}

}  // namespace quern::grammar
