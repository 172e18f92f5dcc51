// Added tokens: contents that are cut out of the text before the model sees it, with the flags of
// the `tokenizers` library. One matcher per class: raw text, and normalized text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/marked_text.hpp"

namespace quern::text {

struct AddedEntry {
  std::string content;  // as it is searched (normalized already in the second class)
  std::int32_t id;
  bool control;  // text of a user must not become it
  bool single_word, lstrip, rstrip;
};

// A stretch of the text: plain (id < 0) or the place of an added token.
struct AddedPiece {
  std::string_view text;
  std::int32_t id;
};

// Which control tokens count. All, none, those that lie wholly in trusted bytes, or those that a list
// names by their order in the text.
struct ControlRule {
  enum class Kind { all, none, trusted, listed } kind = Kind::all;
  const std::vector<base::MarkedText::Range>* untrusted = nullptr;  // trusted: ranges of the text
  const std::vector<bool>* allowed = nullptr;                       // listed: of the first, second ... match
};

class AddedMatcher {
 public:
  explicit AddedMatcher(std::vector<AddedEntry> entries);

  bool empty() const { return entries_.empty(); }

  // Leftmost-longest, as the reference does it: a match that a flag rejects is skipped whole.
  // Contents of control tokens that do not count stay in the plain text; a trusted one is found
  // whatever people wrote beside it.
  // text must outlive the pieces; empty pieces do not occur.
  void split(std::string_view text, const ControlRule& rule, std::vector<AddedPiece>& out) const;
  void split(std::string_view text, bool skip_control, std::vector<AddedPiece>& out) const {
    split(text, {skip_control ? ControlRule::Kind::none : ControlRule::Kind::all, nullptr, nullptr},
          out);
  }

  bool has_control() const;
  // Where the contents of control tokens lie, as split finds them before its flags reject any.
  std::vector<base::MarkedText::Range> control_places(std::string_view text) const;

  // Longest content at `at`: index of the entry, -1 for none. Bounded by the longest content. Control
  // tokens count only where they end at or before `control_end`.
  std::int32_t match_at(std::string_view text, std::size_t at,
                        std::size_t control_end = SIZE_MAX) const;
  std::size_t match_bytes(std::string_view text, std::size_t at) const;  // its length, 0 for none

 private:
  struct Node {
    std::int32_t entry = -1;
    std::uint32_t first_edge = 0, n_edges = 0;
  };
  struct Edge {
    unsigned char byte;
    std::uint32_t node;
  };
  void build();
  std::int32_t child(std::uint32_t node, unsigned char byte) const;

  std::vector<AddedEntry> entries_;  // sorted by content, unique
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;  // of one node: together, ascending
  bool starts_[256] = {};    // first bytes of the contents
};

// Contents longer than this are rejected: matching stays linear in the text.
inline constexpr std::size_t kMostAddedBytes = 1024;

}  // namespace quern::text
