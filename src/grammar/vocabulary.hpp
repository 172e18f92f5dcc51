// The tokens of a vocabulary as a grammar sees them: the bytes that each adds to an answer, in a
// trie. Built once per tokenizer. Not here: how tokens become text (engine/token_texts.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace quern::grammar {

// What is known of the tokens, by id.
struct TokenTexts {
  std::vector<std::string> texts;                          // empty: adds no text, never chosen for it
  std::vector<std::pair<std::int32_t, std::string>> first; // where the answer's first token differs
  std::vector<std::int32_t> ends;                          // ids that end an answer
  std::map<std::string, std::int32_t, std::less<>> spellings;  // of control tokens, for <name>
};

// Bytes of tokens in depth-first order: the subtree of node i is [i, end(i)).
class Trie {
 public:
  struct Node {
    std::uint32_t end;          // of the subtree
    std::uint32_t first_token;  // its tokens: up to the next node's
    std::uint16_t depth;        // bytes up to and with this one
    std::uint8_t byte;
    std::uint8_t plain;         // most characters from here on, all ordinary (plain_runs.hpp), or kNotPlain
  };
  Trie() = default;
  explicit Trie(std::vector<std::pair<std::string_view, std::int32_t>> tokens);

  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()) - 1; }
  const Node& node(std::uint32_t i) const { return nodes_[i]; }
  const std::int32_t* tokens_begin(std::uint32_t i) const { return ids_.data() + nodes_[i].first_token; }
  const std::int32_t* tokens_end(std::uint32_t i) const { return ids_.data() + nodes_[i + 1].first_token; }
  std::size_t max_depth() const { return max_depth_; }

 private:
  void mark_plain(std::string_view text, const std::vector<std::uint32_t>& path);

  std::vector<Node> nodes_{Node{}};  // and one behind the last
  std::vector<std::int32_t> ids_;
  std::size_t max_depth_ = 0;
};

class Vocabulary {
 public:
  // Input error for texts longer than 4096 bytes, and without an end id.
  explicit Vocabulary(TokenTexts texts);

  std::size_t size() const { return texts_.texts.size(); }
  const std::string& text(std::int32_t id) const { return texts_.texts[static_cast<std::size_t>(id)]; }
  const std::string& first_text(std::int32_t id) const;
  const std::vector<std::int32_t>& ends() const { return texts_.ends; }
  bool is_end(std::int32_t id) const;
  std::int32_t id_of(std::string_view spelling) const;  // -1 when unknown
  const Trie& trie() const { return trie_; }
  // Of the first token of an answer; the same object as trie() when there is no difference.
  const Trie& first_trie() const { return texts_.first.empty() ? trie_ : first_trie_; }

 private:
  TokenTexts texts_;
  Trie trie_, first_trie_;
};

}  // namespace quern::grammar
