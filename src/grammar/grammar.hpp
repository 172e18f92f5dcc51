// A grammar as expressions: what GBNF, JSON schemas and regular expressions are turned into, before
// it becomes an automaton (automaton.hpp). Not here: any syntax.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/char_set.hpp"

namespace quern::grammar {

using NodeId = std::uint32_t;
using RuleId = std::uint32_t;

enum class NodeKind : std::uint8_t {
  text,      // exactly these bytes
  chars,     // one character of a set
  sequence,  // children, one after the other
  choice,    // one of the children; of none: nothing matches
  repeat,    // the child, min to max times
  rule,      // what another rule matches
  token,     // one token of the vocabulary, whatever its text
  network,   // a path from place 0 to place 1 along arcs
  begin,     // nothing, at the start of the text (patterns only)
  end,       // nothing, at its end (patterns only)
};

struct Arc {  // from one place of a network to another; without `node`, for nothing
  std::uint32_t from, to;
  std::optional<NodeId> node;
};

// A token by its number, or by its spelling when `id` is negative; negated: any other token.
struct TokenPattern {
  std::int32_t id = -1;
  std::string spelling;
  bool negated = false;
  bool operator==(const TokenPattern&) const = default;
};

inline constexpr std::uint32_t kUnbounded = 0xFFFFFFFF;

struct Node {
  NodeKind kind;
  std::uint32_t depth = 1;         // of the expression tree, at most kMaxNesting * 4
  std::uint32_t min = 0, max = 0;  // repeat
  std::uint32_t target = 0;        // rule: its id; token: index of its pattern
  std::uint32_t n_places = 0;      // network
  std::string text = {};
  CharSet chars = {};
  std::vector<NodeId> children = {};
  std::vector<Arc> arcs = {};
};

// Whether calls of a rule may be replaced by its expression. A shared rule keeps the masks of its
// states in one place.
enum class Inlining : std::uint8_t { automatic, never };

struct Rule {
  std::string name;
  std::optional<NodeId> node;  // none until it is defined
  Inlining inlining = Inlining::automatic;
};

class Grammar {
 public:
  // `where` names the source in errors ("--grammar", a file).
  explicit Grammar(std::string where) : where_(std::move(where)) {}

  NodeId text(std::string_view bytes);
  NodeId chars(CharSet set);
  NodeId sequence(std::vector<NodeId> children);
  NodeId choice(std::vector<NodeId> children);
  NodeId repeat(NodeId child, std::uint32_t min, std::uint32_t max = kUnbounded);
  NodeId rule(RuleId id);
  NodeId token(TokenPattern pattern);
  NodeId network(std::uint32_t n_places, std::vector<Arc> arcs);
  NodeId anchor(NodeKind kind);
  NodeId nothing() { return choice({}); }    // matches no text
  NodeId empty() { return sequence({}); }    // matches the empty text
  NodeId optional(NodeId child) { return repeat(child, 0, 1); }

  RuleId add_rule(std::string name, Inlining inlining = Inlining::automatic);
  void define(RuleId id, NodeId node);
  std::optional<RuleId> find_rule(std::string_view name) const;
  void set_root(RuleId id) { root_ = id; }

  const std::string& where() const { return where_; }
  RuleId root() const { return root_; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const std::vector<Rule>& rules() const { return rules_; }
  const std::vector<TokenPattern>& tokens() const { return tokens_; }

 private:
  NodeId add(Node node);

  std::string where_;
  std::vector<Node> nodes_;
  std::vector<Rule> rules_;
  std::vector<TokenPattern> tokens_;
  RuleId root_ = 0;
};

}  // namespace quern::grammar
