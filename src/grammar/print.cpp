#include "grammar/print.hpp"

#include <array>
#include <cstdio>
#include <vector>

#include "base/strings.hpp"

namespace quern::grammar {

namespace {

using base::cat;

std::string escaped(char32_t c, std::string_view special) {
  std::array<char, 16> text{};
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  if (c == '\r') return "\\r";
  const bool sign = special.find(']') != std::string_view::npos && (c == '^' || c == '-');  // of a class
  if (c < 0x7F && c >= 0x20 && !sign) {
    const auto letter = static_cast<char>(c);
    return special.find(letter) != std::string_view::npos ? std::string("\\") + letter : std::string(1, letter);
  }
  std::snprintf(text.data(), text.size(), c < 0x100 ? "\\x%02X" : c < 0x10000 ? "\\u%04X" : "\\U%08X",
                static_cast<unsigned>(c));
  return text.data();
}

std::string literal(std::string_view text) {
  std::string out = "\"";
  char32_t c = 0;
  for (std::size_t at = 0; at < text.size() && next_char(text, at, c);) out += escaped(c, "\"\\");
  return out += '"';
}

std::string ranges(const std::vector<CharRange>& list) {
  std::string out;
  for (const CharRange& range : list) {
    out += escaped(range.low, "[]\\");
    if (range.high > range.low + 1) out += '-';
    if (range.high != range.low) out += escaped(range.high, "[]\\");
  }
  return out;
}

std::string char_class(const CharSet& set) {
  if (set == CharSet::any()) return ".";
  const CharSet rest = set.complement();
  const bool negated = rest.ranges().size() < set.ranges().size();
  return cat(negated ? "[^" : "[", ranges(negated ? rest.ranges() : set.ranges()), "]");
}

class Printer {
 public:
  explicit Printer(const Grammar& grammar) : grammar_(grammar), names_(grammar.rules().size()) {}

  std::string run() {
    name_of(grammar_.root());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const RuleId rule = order_[i];
      const std::string text = node(*grammar_.rules()[rule].node, Binding::choice);
      out_ += cat(names_[rule], " ::= ", text, "\n");
      for (const std::string& extra : extra_) out_ += extra;
      extra_.clear();
    }
    return std::move(out_);
  }

 private:
  enum class Binding { choice, sequence, item };  // how tight the place binds

  const std::string& name_of(RuleId rule) {
    if (names_[rule].empty()) {
      names_[rule] = rule == grammar_.root() ? "root" : grammar_.rules()[rule].name;
      order_.push_back(rule);
    }
    return names_[rule];
  }

  std::string joined(const std::vector<NodeId>& children, std::string_view between, Binding inside) {
    std::string out;
    for (const NodeId child : children) {
      if (!out.empty()) out += between;
      out += node(child, inside);
    }
    return out;
  }

  std::string node(NodeId id, Binding place) {
    const Node& n = grammar_.node(id);
    switch (n.kind) {
      case NodeKind::text: return literal(n.text);
      case NodeKind::chars: return n.chars.empty() ? "[]" : char_class(n.chars);
      case NodeKind::rule: return name_of(n.target);
      case NodeKind::token: return token(grammar_.tokens()[n.target]);
      case NodeKind::repeat: return repeat(n);
      case NodeKind::network: return network(n);
      case NodeKind::begin:
      case NodeKind::end: return "\"\"";
      case NodeKind::choice: break;
      case NodeKind::sequence: break;
    }
    if (n.children.empty()) return n.kind == NodeKind::choice ? "[]" : "\"\"";
    const bool choice = n.kind == NodeKind::choice;
    std::string text = joined(n.children, choice ? " | " : " ", Binding::sequence);
    const bool loose = choice ? place != Binding::choice : place == Binding::item;
    return loose ? cat("(", text, ")") : text;
  }

  std::string repeat(const Node& n) {
    const std::string child = node(n.children.front(), Binding::item);
    const bool twice = grammar_.node(n.children.front()).kind == NodeKind::repeat;
    const std::string item = twice ? cat("(", child, ")") : child;
    if (n.min == 0 && n.max == 1) return item + "?";
    if (n.max == kUnbounded && n.min <= 1) return item + (n.min == 0 ? "*" : "+");
    if (n.max == kUnbounded) return cat(item, "{", n.min, ",}");
    return n.min == n.max ? cat(item, "{", n.min, "}") : cat(item, "{", n.min, ",", n.max, "}");
  }

  static std::string token(const TokenPattern& pattern) {
    return cat(pattern.negated ? "!" : "",
               pattern.id >= 0 ? cat("<[", pattern.id, "]>") : pattern.spelling);
  }

  // A rule for each place, that says how to go on.
  std::string network(const Node& n) {
    const std::string prefix = cat("path_", ++n_networks_);  // no other rule's name has a _ here
    std::vector<std::string> lines(n.n_places);
    for (const Arc& arc : n.arcs) {
      std::string text = arc.node ? node(*arc.node, Binding::sequence) : "";
      if (arc.to != 1) text += cat(text.empty() ? "" : " ", prefix, "_", arc.to);
      lines[arc.from] += cat(lines[arc.from].empty() ? "" : " | ", text.empty() ? "\"\"" : text);
    }
    for (std::uint32_t i = 0; i < n.n_places; ++i)
      if (i != 1) extra_.push_back(cat(prefix, "_", i, " ::= ", lines[i].empty() ? "[]" : lines[i], "\n"));
    return prefix + "_0";
  }

  const Grammar& grammar_;
  std::vector<std::string> names_, extra_;
  std::vector<RuleId> order_;
  std::size_t n_networks_ = 0;
  std::string out_;
};

}  // namespace

std::string print_gbnf(const Grammar& grammar) { return Printer(grammar).run(); }

}  // namespace quern::grammar
