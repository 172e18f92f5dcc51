#include <algorithm>
#include <bit>
#include <unordered_map>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "text/bpe.hpp"
#include "text/tokenizer_layout.hpp"
#include "text/tokenizer_tables.hpp"
#include "text/trie_build.hpp"

namespace quern::text {

namespace {

constexpr std::string_view kWhere = "tokenizer";

// At most half full: a search that fails looks at 2.5 slots on average.
std::uint32_t slots_for(std::size_t entries) {
  return std::bit_ceil(static_cast<std::uint32_t>(std::max<std::size_t>(entries, 4) * 2));
}

class Builder {
 public:
  explicit Builder(const Vocabulary& vocabulary)
      : vocabulary_(vocabulary), trie_(build_trie(vocabulary)) {
    for (const std::string& token : vocabulary.tokens) header_.token_bytes += token.size();
    if (vocabulary.tokens.size() > layout::kMostTokens ||
        vocabulary.merges.size() > layout::kMostMerges / 2 ||
        trie_.labels.size() > layout::kMostNodes ||
        vocabulary.charsmap.size() > layout::kMostCharsmapBytes ||
        header_.token_bytes > layout::kMostTokenBytes)
      base::reject(kWhere, "vocabulary too large", base::cat(vocabulary.tokens.size(), " tokens"));
    header_.magic = layout::kMagic;
    header_.version = layout::kVersion;
    header_.n_tokens = static_cast<std::uint32_t>(vocabulary.tokens.size());
    header_.n_merges = static_cast<std::uint32_t>(vocabulary.merges.size());
    header_.token_slots = slots_for(vocabulary.tokens.size());
    header_.merge_slots = slots_for(vocabulary.merges.size());
    header_.charsmap_bytes = vocabulary.charsmap.size();
    header_.n_ids =
        vocabulary.n_ids == 0 ? header_.n_tokens : static_cast<std::uint32_t>(vocabulary.n_ids);
    header_.first_decoded = static_cast<std::uint32_t>(vocabulary.first_decoded);
    header_.n_nodes = static_cast<std::uint32_t>(trie_.labels.size());
    header_.n_scores = static_cast<std::uint32_t>(vocabulary.scores.size());
    header_.unk_score = vocabulary.unk_score;
    parts_ = layout::parts_of(header_);
    section_.resize(parts_.end);
  }

  std::vector<std::byte> run() {
    std::memcpy(section_.data(), &header_, sizeof header_);
    write_tokens();
    write_merges();
    write_bytes();
    write_trie();
    mark_whole_tokens();
    return std::move(section_);
  }

 private:
  template <class T>
  void store(std::uint64_t part, std::uint64_t index, T value) {
    std::memcpy(section_.data() + part + index * sizeof(T), &value, sizeof(T));
  }

  std::uint64_t slot(std::uint64_t part, std::uint64_t index) const {
    return layout::load<std::uint64_t>(section_.data() + part, index);
  }

  bool searchable(std::size_t id) const {
    const bool hidden = id < vocabulary_.decode_only.size() && vocabulary_.decode_only[id];
    return !vocabulary_.tokens[id].empty() && !hidden;
  }

  void write_tokens() {
    std::uint32_t offset = 0;
    for (std::size_t id = 0; id < vocabulary_.tokens.size(); ++id) {
      const std::string& token = vocabulary_.tokens[id];
      std::memcpy(section_.data() + parts_.token_bytes + offset, token.data(), token.size());
      offset += static_cast<std::uint32_t>(token.size());
      store(parts_.offsets, id + 1, offset);
      if (searchable(id)) add_token(static_cast<std::uint32_t>(id));
    }
  }

  void add_token(std::uint32_t id) {
    const std::string& token = vocabulary_.tokens[id];
    const std::uint64_t hash = layout::token_hash(token), mask = header_.token_slots - 1;
    std::uint64_t at = hash & mask;
    for (; slot(parts_.token_slots, at) != 0; at = (at + 1) & mask) {
      const auto other = static_cast<std::uint32_t>(slot(parts_.token_slots, at)) - 1;
      if (vocabulary_.tokens[other] == token) return;  // the lower id keeps the text
    }
    store(parts_.token_slots, at, (hash >> 32) << 32 | (id + 1));
  }

  void write_merges() {
    const auto n_tokens = static_cast<std::int64_t>(vocabulary_.tokens.size());
    for (std::size_t rank = 0; rank < vocabulary_.merges.size(); ++rank) {
      const Vocabulary::Merge& merge = vocabulary_.merges[rank];
      for (const std::int32_t id : {merge.left, merge.right, merge.result})
        if (id < 0 || id >= n_tokens)
          base::reject(kWhere, base::cat("merge ", rank, " names no token"));
      store(parts_.merges, rank * 3, merge.left);
      store(parts_.merges, rank * 3 + 1, merge.right);
      store(parts_.merges, rank * 3 + 2, merge.result);
      add_merge(merge, static_cast<std::uint32_t>(rank));
    }
  }

  // The token of each byte: the byte itself, or its spelling for falling back.
  void write_bytes() {
    std::unordered_map<std::string_view, std::uint32_t> spelled;
    for (std::size_t id = 0; id < vocabulary_.tokens.size(); ++id) {
      const std::string& token = vocabulary_.tokens[id];
      const bool fits = vocabulary_.byte_level ? token.size() == 1 && searchable(id)
                                               : token.size() == 6 && token.starts_with("<0x");
      if (fits) spelled.emplace(token, static_cast<std::uint32_t>(id) + 1);
    }
    for (unsigned byte = 0; byte < layout::kBytes; ++byte) {
      const auto found =
          spelled.find(vocabulary_.byte_level ? std::string(1, static_cast<char>(byte))
                                              : byte_token(static_cast<unsigned char>(byte)));
      if (found != spelled.end()) store(parts_.byte_ids, byte, found->second);
    }
  }

  void write_trie() {
    for (std::size_t i = 0; i < trie_.labels.size(); ++i) {
      store(parts_.first_child, i, trie_.first_child[i]);
      store(parts_.node_token, i, trie_.node_token[i]);
      store(parts_.labels, i, trie_.labels[i]);
    }
    if (!trie_.labels.empty()) store(parts_.first_child, trie_.labels.size(), header_.n_nodes);
    for (std::size_t i = 0; i < vocabulary_.scores.size(); ++i)
      store(parts_.scores, i, vocabulary_.scores[i]);
    if (!vocabulary_.charsmap.empty())
      std::memcpy(section_.data() + parts_.charsmap, vocabulary_.charsmap.data(),
                  vocabulary_.charsmap.size());
  }

  void add_merge(const Vocabulary::Merge& merge, std::uint32_t rank) {
    const std::uint64_t hash = layout::merge_hash(static_cast<std::uint32_t>(merge.left),
                                                  static_cast<std::uint32_t>(merge.right));
    const std::uint64_t mask = header_.merge_slots - 1;
    std::uint64_t at = hash & mask;
    for (; slot(parts_.merge_slots, at) != 0; at = (at + 1) & mask) {
      const auto other = static_cast<std::uint32_t>(slot(parts_.merge_slots, at)) - 1;
      if (vocabulary_.merges[other].left == merge.left &&
          vocabulary_.merges[other].right == merge.right)
        break;
    }
    store(parts_.merge_slots, at, (hash >> 32) << 32 | (rank + 1));
  }

  // Whole tokens: their bytes merge to them alone. True for nearly all of a trained vocabulary, and
  // it saves most words the merging.
  void mark_whole_tokens() {
    if (vocabulary_.merges.empty()) return;
    const TokenizerTables tables(section_, kWhere);
    const Bpe bpe(tables, {.byte_level = vocabulary_.byte_level});
    std::vector<std::int32_t> ids;
    for (std::uint64_t at = 0; at < header_.token_slots; ++at) {
      const std::uint64_t value = slot(parts_.token_slots, at);
      if (value == 0) continue;
      const auto id = static_cast<std::int32_t>(static_cast<std::uint32_t>(value) - 1);
      ids.clear();
      bpe.merge_word(vocabulary_.tokens[static_cast<std::size_t>(id)], nullptr, ids);
      if (ids.size() == 1 && ids[0] == id) store(parts_.token_slots, at, value | layout::kWholeBit);
    }
  }

  const Vocabulary& vocabulary_;
  Trie trie_;
  layout::Header header_{};
  layout::Parts parts_{};
  std::vector<std::byte> section_;
};

}  // namespace

std::vector<std::byte> build_tokenizer_tables(const Vocabulary& vocabulary) {
  if (!vocabulary.scores.empty() && vocabulary.scores.size() != vocabulary.tokens.size())
    base::reject(kWhere, "not one score for each token");
  return Builder(vocabulary).run();
}

}  // namespace quern::text
