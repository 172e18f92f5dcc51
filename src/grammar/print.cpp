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

  std::string node(NodeId id, Binding place) {
    std::string out;
    add(id, place, out);
    return out;
  }

  // Expressions nest: what stands in its frame counts as often (grammars of strangers, small stacks).
  void add(NodeId id, Binding place, std::string& out) {
    const Node& n = grammar_.node(id);
    const bool choice = n.kind == NodeKind::choice, repeats = n.kind == NodeKind::repeat;
    if ((!choice && !repeats && n.kind != NodeKind::sequence) || n.children.empty()) return leaf(n, out);
    const bool twice = repeats && grammar_.node(n.children.front()).kind == NodeKind::repeat;
    const bool loose = choice ? place != Binding::choice : n.kind == NodeKind::sequence && place == Binding::item;
    if (loose || twice) out += '(';
    for (std::size_t i = 0; i < n.children.size(); ++i) {
      if (i != 0) out += choice ? " | " : " ";
      add(n.children[i], repeats ? Binding::item : Binding::sequence, out);
    }
    if (loose || twice) out += ')';
    if (repeats) add_count(n, out);
  }

  [[gnu::noinline]] void leaf(const Node& n, std::string& out) {
    switch (n.kind) {
      case NodeKind::text: out += literal(n.text); return;
      case NodeKind::chars: out += n.chars.empty() ? "[]" : char_class(n.chars); return;
      case NodeKind::rule: out += name_of(n.target); return;
      case NodeKind::token: out += token(grammar_.tokens()[n.target]); return;
      case NodeKind::network: out += network(n); return;
      case NodeKind::choice: out += "[]"; return;
      default: out += "\"\""; return;
    }
  }

  [[gnu::noinline]] static void add_count(const Node& n, std::string& out) {
    if (n.min == 0 && n.max == 1) out += '?';
    else if (n.max == kUnbounded && n.min <= 1) out += n.min == 0 ? '*' : '+';
    else if (n.max == kUnbounded) out += cat("{", n.min, ",}");
    else out += n.min == n.max ? cat("{", n.min, "}") : cat("{", n.min, ",", n.max, "}");
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
