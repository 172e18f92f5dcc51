#include "text/bpe.hpp"

#include <algorithm>
#include <queue>

#include "text/unicode.hpp"
#include "text/unknown.hpp"

namespace quern::text {

namespace {

constexpr std::size_t kShortWord =
    32;  // symbols; up to here looking through all pairs beats a heap

constexpr std::uint32_t kNoRank = 0xFFFFFFFF;
constexpr std::uint32_t kEnd = 0xFFFFFFFF;

// A pair that may merge: ordered by rank, then by place.
struct Candidate {
  std::uint32_t rank, at;
  std::int32_t left, right, result;
  bool operator>(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : at > other.at;
  }
};

}  // namespace

Bpe::Bpe(const TokenizerTables& tables, Options options)
    : tables_(tables),
      options_(std::move(options)),
      plain_(options_.subword_prefix.empty() && options_.word_suffix.empty()) {}

void Bpe::encode_word(std::string_view word, const IdSet* banned,
                      std::vector<std::int32_t>& out) const {
  const TokenizerTables::Found found = tables_.lookup(word);
  if (found.id >= 0 && ((found.whole && plain_) || options_.ignore_merges) &&
      (banned == nullptr || !banned->contains(found.id))) {
    out.push_back(found.id);
    return;
  }
  merge_word(word, banned, out);
}

std::int32_t Bpe::id_of_symbol(std::string_view word, std::size_t at, std::size_t bytes) const {
  if (options_.byte_level) return tables_.byte_id(static_cast<unsigned char>(word[at]));
  const std::string_view text = word.substr(at, bytes);
  if (plain_) return tables_.find(text);
  std::string spelled = at == 0 ? std::string() : options_.subword_prefix;
  spelled += text;
  if (at + bytes == word.size()) spelled += options_.word_suffix;
  return tables_.find(spelled);
}

// An unknown symbol waits until it is known whether the next one joins it; bytes do not end the
// wait, as in the reference.
void Bpe::initial_symbols(std::string_view word, std::vector<std::int32_t>& out) const {
  bool waiting = false;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t bytes = options_.byte_level ? 1 : decode_char(word, at).bytes;
    const std::int32_t id = id_of_symbol(word, at, bytes);
    const std::string_view text = word.substr(at, bytes);
    at += bytes;
    if (id >= 0) {
      if (waiting) out.push_back(*options_.unk_id);
      waiting = false;
      out.push_back(id);
    } else if (options_.byte_fallback && append_byte_ids(tables_, text, out)) {
      continue;
    } else if (options_.unk_id) {
      if (waiting && !options_.fuse_unk) out.push_back(*options_.unk_id);
      waiting = true;
    }
  }
  if (waiting) out.push_back(*options_.unk_id);
}

// The symbols of a short word of bytes; 0 when one byte has no token.
std::size_t Bpe::byte_symbols(std::string_view word, std::int32_t* symbols) const {
  if (!options_.byte_level || word.size() > kShortWord) return 0;
  std::size_t count = 0;
  for (const char c : word)
    if ((symbols[count++] = tables_.byte_id(static_cast<unsigned char>(c))) < 0) return 0;
  return count;
}

TokenizerTables::MergeResult Bpe::merge_of(std::int32_t left, std::int32_t right,
                                           const IdSet* banned) const {
  TokenizerTables::MergeResult merge = tables_.merge(left, right);
  if (banned != nullptr && merge.result >= 0 && banned->contains(merge.result)) merge.result = -1;
  return merge;
}

void Bpe::merge_word(std::string_view word, const IdSet* banned,
                     std::vector<std::int32_t>& out) const {
  std::int32_t short_word[kShortWord];
  if (const std::size_t count = byte_symbols(word, short_word))
    return merge_short(short_word, count, banned, out);
  std::vector<std::int32_t> symbols;
  symbols.reserve(word.size());
  initial_symbols(word, symbols);
  if (symbols.size() <= kShortWord) return merge_short(symbols.data(), symbols.size(), banned, out);
  merge_long(symbols, banned, out);
}

void Bpe::merge_short(std::int32_t* symbols, std::size_t count, const IdSet* banned,
                      std::vector<std::int32_t>& out) const {
  // rank[i], result[i]: of the pair (i, i + 1).
  std::uint32_t rank[kShortWord] = {};
  std::int32_t result[kShortWord] = {};
  const auto look_up = [&](std::size_t i) {
    const TokenizerTables::MergeResult merge = merge_of(symbols[i], symbols[i + 1], banned);
    rank[i] = merge.result < 0 ? kNoRank : merge.rank;
    result[i] = merge.result;
  };
  for (std::size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    const std::uint32_t* best = std::min_element(rank, rank + count - 1);
    if (*best == kNoRank) break;
    const auto at = static_cast<std::size_t>(best - rank);
    symbols[at] = result[at];
    --count;
    for (std::size_t i = at + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      rank[i] = rank[i + 1];
      result[i] = result[i + 1];
    }
    if (at > 0) look_up(at - 1);
    if (at + 1 < count) look_up(at);
  }
  out.insert(out.end(), symbols, symbols + count);
}

// A linked list of symbols and a heap of pairs; a candidate whose symbols have changed since is
// stale.
void Bpe::merge_long(std::vector<std::int32_t>& symbols, const IdSet* banned,
                     std::vector<std::int32_t>& out) const {
  constexpr std::int32_t kGone = -1;
  const auto count = static_cast<std::uint32_t>(symbols.size());
  std::vector<std::uint32_t> next(count), previous(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1 < count ? i + 1 : kEnd;
    previous[i] = i > 0 ? i - 1 : kEnd;
  }
  std::vector<Candidate> initial;
  initial.reserve(count);
  const auto candidate = [&](std::uint32_t at) {
    const std::int32_t left = symbols[at], right = symbols[next[at]];
    const TokenizerTables::MergeResult merge = merge_of(left, right, banned);
    return Candidate{merge.rank, at, left, right, merge.result};
  };
  for (std::uint32_t i = 0; i + 1 < count; ++i)
    if (const Candidate found = candidate(i); found.result >= 0) initial.push_back(found);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap(std::greater<>(),
                                                                              std::move(initial));
  while (!heap.empty()) {
    const Candidate top = heap.top();
    heap.pop();
    const std::uint32_t right = symbols[top.at] == top.left ? next[top.at] : kEnd;
    if (right == kEnd || symbols[right] != top.right) continue;
    symbols[top.at] = top.result;
    symbols[right] = kGone;
    next[top.at] = next[right];
    if (next[right] != kEnd) previous[next[right]] = top.at;
    for (const std::uint32_t at : {previous[top.at], top.at}) {
      if (at == kEnd || next[at] == kEnd) continue;
      if (const Candidate found = candidate(at); found.result >= 0) heap.push(found);
    }
  }
  for (std::uint32_t i = 0; i != kEnd; i = next[i]) out.push_back(symbols[i]);
}

}  // namespace quern::text
