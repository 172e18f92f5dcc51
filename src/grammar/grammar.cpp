#include "grammar/grammar.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "grammar/limits.hpp"

namespace quern::grammar {

using base::cat;

// Depth is bounded here, once for every syntax, so that code over expressions may recurse.
NodeId Grammar::add(Node node) {
  std::uint32_t depth = 0;
  for (const NodeId child : node.children) depth = std::max(depth, nodes_[child].depth);
  for (const Arc& arc : node.arcs)
    if (arc.node) depth = std::max(depth, nodes_[*arc.node].depth);
  node.depth = depth + 1;
  if (node.depth > kMaxNesting * 4) base::reject(where_, "expressions nest too deep");
  if (nodes_.size() >= kMaxNodes)
    base::reject(where_, "too large a grammar", {}, cat("at most ", kMaxNodes, " expressions"));
  nodes_.push_back(std::move(node));
  return static_cast<NodeId>(nodes_.size() - 1);
}

NodeId Grammar::text(std::string_view bytes) {
  Node node{.kind = NodeKind::text};
  node.text = bytes;
  return add(std::move(node));
}

NodeId Grammar::chars(CharSet set) {
  Node node{.kind = NodeKind::chars};
  node.chars = std::move(set);
  return add(std::move(node));
}

NodeId Grammar::sequence(std::vector<NodeId> children) {
  if (children.size() == 1) return children.front();
  Node node{.kind = NodeKind::sequence};
  node.children = std::move(children);
  return add(std::move(node));
}

NodeId Grammar::choice(std::vector<NodeId> children) {
  if (children.size() == 1) return children.front();
  Node node{.kind = NodeKind::choice};
  node.children = std::move(children);
  return add(std::move(node));
}

NodeId Grammar::repeat(NodeId child, std::uint32_t min, std::uint32_t max) {
  const std::uint32_t largest = max == kUnbounded ? min : max;
  if (largest > kMaxRepeat)
    base::reject(where_, "too many repetitions", cat(largest), cat("at most ", kMaxRepeat));
  if (max < min) base::reject(where_, "a repetition whose end lies before its start", cat("{", min, ",", max, "}"));
  Node node{.kind = NodeKind::repeat};
  node.min = min;
  node.max = max;
  node.children = {child};
  return add(std::move(node));
}

NodeId Grammar::rule(RuleId id) {
  Node node{.kind = NodeKind::rule};
  node.target = id;
  return add(std::move(node));
}

NodeId Grammar::token(TokenPattern pattern) {
  const auto found = std::find(tokens_.begin(), tokens_.end(), pattern);
  Node node{.kind = NodeKind::token};
  node.target = static_cast<std::uint32_t>(found - tokens_.begin());
  if (found == tokens_.end()) {
    if (tokens_.size() >= 1000) base::reject(where_, "more than 1000 different tokens");
    tokens_.push_back(std::move(pattern));
  }
  return add(std::move(node));
}

NodeId Grammar::network(std::uint32_t n_places, std::vector<Arc> arcs) {
  Node node{.kind = NodeKind::network};
  node.n_places = n_places;
  node.arcs = std::move(arcs);
  return add(std::move(node));
}

NodeId Grammar::anchor(NodeKind kind) { return add({.kind = kind}); }

RuleId Grammar::add_rule(std::string name, Inlining inlining) {
  if (rules_.size() >= kMaxRules)
    base::reject(where_, "too many rules", {}, cat("at most ", kMaxRules));
  rules_.push_back({std::move(name), std::nullopt, inlining});
  return static_cast<RuleId>(rules_.size() - 1);
}

void Grammar::define(RuleId id, NodeId node) { rules_[id].node = node; }

std::optional<RuleId> Grammar::find_rule(std::string_view name) const {
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (rules_[i].name == name) return static_cast<RuleId>(i);
  return std::nullopt;
}

}  // namespace quern::grammar
