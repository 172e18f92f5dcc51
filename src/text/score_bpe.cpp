#include "text/score_bpe.hpp"

#include <algorithm>
#include <queue>

#include "text/unicode.hpp"

namespace quern::text {

namespace {

constexpr std::uint32_t kEnd = 0xFFFFFFFF;

std::vector<AddedEntry> entries_of(const TokenizerTables& tables,
                                   const std::vector<std::int32_t>& ids) {
  std::vector<AddedEntry> entries;
  for (const std::int32_t id : ids)
    if (!tables.token(id).empty())
      entries.push_back({std::string(tables.token(id)), id, false, false, false, false});
  return entries;
}

}  // namespace

struct ScoreBpe::Symbol {
  std::size_t begin, bytes;  // bytes 0: joined into another
  std::uint32_t previous, next;
  bool frozen;
};

struct ScoreBpe::Candidate {
  float score;
  std::uint32_t left;
  std::size_t bytes;  // of both together: another length means that the candidate is stale
  bool operator<(const Candidate& other) const {
    return score != other.score ? score < other.score : left > other.left;
  }
};

ScoreBpe::ScoreBpe(const TokenizerTables& tables, const Unknown& unknown,
                   const std::vector<std::int32_t>& user_defined)
    : tables_(tables), unknown_(unknown), user_defined_(entries_of(tables, user_defined)) {
  for (std::size_t id = 0; id < tables.size(); ++id)
    longest_ = std::max(longest_, tables.token(static_cast<std::int32_t>(id)).size());
}

std::vector<ScoreBpe::Symbol> ScoreBpe::cut(std::string_view word, const IdSet* banned) const {
  std::vector<Symbol> symbols;
  for (std::size_t at = 0; at < word.size();) {
    std::size_t whole = user_defined_.match_bytes(word, at);
    if (whole > 0 && banned != nullptr && banned->contains(tables_.find(word.substr(at, whole))))
      whole = 0;
    const std::size_t bytes = whole > 0 ? whole : decode_char(word, at).bytes;
    const auto index = static_cast<std::uint32_t>(symbols.size());
    symbols.push_back({at, bytes, index - 1, index + 1, whole > 0});
    at += bytes;
  }
  if (!symbols.empty()) symbols.front().previous = symbols.back().next = kEnd;
  return symbols;
}

// Whether the symbol at `at` and its right neighbour make a piece.
bool ScoreBpe::candidate(std::string_view word, const std::vector<Symbol>& symbols,
                         std::uint32_t at, const IdSet* banned, Candidate& out) const {
  if (at == kEnd || symbols[at].next == kEnd) return false;
  const Symbol &left = symbols[at], &right = symbols[left.next];
  const std::size_t bytes = left.bytes + right.bytes;
  if (left.frozen || right.frozen || bytes > longest_) return false;
  const std::int32_t token = tables_.find(word.substr(left.begin, bytes));
  if (token < 0 || (banned != nullptr && banned->contains(token))) return false;
  out = {static_cast<float>(tables_.score(token)), at, bytes};
  return true;
}

void ScoreBpe::join(std::string_view word, const IdSet* banned,
                    std::vector<Symbol>& symbols) const {
  std::vector<Candidate> initial;
  Candidate found{};
  for (std::uint32_t at = 0; at + 1 < symbols.size(); ++at)
    if (candidate(word, symbols, at, banned, found)) initial.push_back(found);
  std::priority_queue<Candidate> heap(std::less<Candidate>(), std::move(initial));
  while (!heap.empty()) {
    const Candidate top = heap.top();
    heap.pop();
    Symbol& left = symbols[top.left];
    if (left.bytes == 0 || left.next == kEnd) continue;
    Symbol& right = symbols[left.next];
    if (left.bytes + right.bytes != top.bytes) continue;
    left.bytes = top.bytes;
    right.bytes = 0;
    left.next = right.next;
    if (left.next != kEnd) symbols[left.next].previous = top.left;
    for (const std::uint32_t at : {left.previous, top.left})
      if (candidate(word, symbols, at, banned, found)) heap.push(found);
  }
}

// Neighbouring unknowns are one, unless they become bytes.
void ScoreBpe::append(std::string_view word, const std::vector<Symbol>& symbols,
                      const IdSet* banned, std::vector<std::int32_t>& out) const {
  bool after_unknown = false;
  for (std::uint32_t at = 0; at != kEnd; at = symbols[at].next) {
    const std::string_view text = word.substr(symbols[at].begin, symbols[at].bytes);
    const std::int32_t token = tables_.find(text);
    const bool known =
        token >= 0 && tables_.is_id(token) && (banned == nullptr || !banned->contains(token));
    if (known) {
      out.push_back(token);
    } else {
      const bool spelled = unknown_.byte_fallback && append_byte_ids(tables_, text, out);
      if (!spelled && unknown_.id && !after_unknown) out.push_back(*unknown_.id);
    }
    after_unknown = !known;
  }
}

void ScoreBpe::encode_word(std::string_view word, const IdSet* banned,
                           std::vector<std::int32_t>& out) const {
  std::vector<Symbol> symbols = cut(word, banned);
  if (symbols.empty()) return;
  join(word, banned, symbols);
  append(word, symbols, banned, out);
}

}  // namespace quern::text
