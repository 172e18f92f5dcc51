#include "grammar/nfa_builder.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::grammar {

NfaBuilder::NfaBuilder(const Grammar& grammar, Alphabet alphabet,
                       const std::vector<std::uint8_t>& inlined, const FiniteLimits& limits)
    : grammar_(grammar), alphabet_(alphabet), inlined_(inlined), limits_(limits) {}

Nfa NfaBuilder::build(NodeId node) {
  nfa_ = Nfa{};
  nfa_.start = add_state();
  nfa_.final = add_state();
  add(node, nfa_.start, nfa_.final);
  return std::move(nfa_);
}

std::uint32_t NfaBuilder::add_state() {
  if (nfa_.states.size() >= limits_.max_states)
    base::reject(limits_.where, "too large an automaton (repetitions multiply)", {},
                 base::cat("at most ", limits_.max_states, " states"));
  nfa_.states.emplace_back();
  return static_cast<std::uint32_t>(nfa_.states.size() - 1);
}

void NfaBuilder::link(std::uint32_t from, std::uint32_t to, Nfa::When when) {
  nfa_.states[from].links.push_back({to, when});
}

void NfaBuilder::edge(std::uint32_t from, Symbol low, Symbol high, std::uint32_t to) {
  nfa_.states[from].edges.push_back({low, high, to});
}

void NfaBuilder::add(NodeId id, std::uint32_t from, std::uint32_t to) {
  const Node& node = grammar_.node(id);
  switch (node.kind) {
    case NodeKind::text: return add_text(node.text, from, to);
    case NodeKind::chars: return add_chars(node.chars, from, to);
    case NodeKind::sequence: return add_sequence(node.children, from, to);
    case NodeKind::choice:
      for (const NodeId child : node.children) add(child, from, to);
      return;
    case NodeKind::repeat: return add_repeat(node, from, to);
    case NodeKind::rule: return add_rule(node.target, from, to);
    case NodeKind::token: return edge(from, kTokenSymbol + node.target, kTokenSymbol + node.target, to);
    case NodeKind::network: return add_network(node, from, to);
    case NodeKind::begin: return link(from, to, Nfa::When::at_begin);
    case NodeKind::end: return link(from, to, Nfa::When::at_end);
  }
}

void NfaBuilder::add_text(const std::string& text, std::uint32_t from, std::uint32_t to) {
  std::vector<Symbol> symbols;
  for (std::size_t at = 0; at < text.size();) {
    char32_t c = 0;
    if (alphabet_ == Alphabet::characters && next_char(text, at, c)) {
      symbols.push_back(c);
    } else {
      symbols.push_back(static_cast<unsigned char>(text[at++]));
    }
  }
  if (symbols.empty()) return link(from, to);
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const std::uint32_t next = i + 1 == symbols.size() ? to : add_state();
    edge(from, symbols[i], symbols[i], next);
    from = next;
  }
}

void NfaBuilder::add_chars(const CharSet& set, std::uint32_t from, std::uint32_t to) {
  for (const CharRange& range : set.ranges()) {
    if (alphabet_ == Alphabet::characters) {
      edge(from, range.low, range.high, to);
      continue;
    }
    utf8_sequences(range, [&](const ByteSequence& sequence) {
      std::uint32_t at = from;
      for (std::size_t i = 0; i < sequence.size; ++i) {
        const std::uint32_t next = i + 1 == sequence.size ? to : add_state();
        edge(at, sequence.bytes[i].low, sequence.bytes[i].high, next);
        at = next;
      }
    });
  }
}

void NfaBuilder::add_sequence(const std::vector<NodeId>& children, std::uint32_t from,
                              std::uint32_t to) {
  if (children.empty()) return link(from, to);
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::uint32_t next = i + 1 == children.size() ? to : add_state();
    add(children[i], from, next);
    from = next;
  }
}

bool NfaBuilder::has_anchor(NodeId id) const {
  const Node& node = grammar_.node(id);
  if (node.kind == NodeKind::begin || node.kind == NodeKind::end) return true;
  return std::any_of(node.children.begin(), node.children.end(),
                     [&](NodeId child) { return has_anchor(child); });
}

// States of its own for each copy, so that no way into or out of a loop is shared.
void NfaBuilder::add_repeat(const Node& node, std::uint32_t from, std::uint32_t to) {
  const NodeId child = node.children.front();
  const std::uint32_t n_copies = node.max == kUnbounded ? node.min : node.max;
  // Many copies are made of the smallest automaton, which for a character is a few states.
  Dfa small;
  const bool copies = n_copies > 4 && !has_anchor(child);
  if (copies) {
    small = determinize(NfaBuilder(grammar_, alphabet_, inlined_, limits_).build(child), limits_);
    if (small.empty()) {  // the child matches nothing
      if (node.min == 0) link(from, to);
      return;
    }
  }
  const auto add_child = [&](std::uint32_t a, std::uint32_t b) {
    if (copies) {
      add_copy(small, a, b);
    } else {
      add(child, a, b);
    }
  };
  std::uint32_t at = add_state(), last = at;
  link(from, at);
  for (std::uint32_t i = 0; i < n_copies; ++i) {
    if (i >= node.min) link(at, to);
    const std::uint32_t next = add_state();
    add_child(at, next);
    last = at;
    at = next;
  }
  link(at, to);
  if (node.max != kUnbounded) return;
  if (node.min > 0) {
    link(at, last);  // the last copy once more
  } else {
    const std::uint32_t back = add_state();
    add_child(at, back);
    link(back, at);
  }
}

void NfaBuilder::add_copy(const Dfa& dfa, std::uint32_t from, std::uint32_t to) {
  std::vector<std::uint32_t> place(dfa.states.size());
  for (std::size_t i = 0; i < place.size(); ++i) {
    const Dfa::State& state = dfa.states[i];
    place[i] = i == 0 ? from : state.final && state.edges.empty() ? to : add_state();
  }
  // The start may lie on a loop of the copy, `from` may not.
  const bool loops = std::any_of(dfa.states.begin(), dfa.states.end(), [](const Dfa::State& state) {
    return std::any_of(state.edges.begin(), state.edges.end(),
                       [](const Edge& e) { return e.to == 0; });
  });
  if (loops) {
    place[0] = add_state();
    link(from, place[0]);
  }
  for (std::size_t i = 0; i < place.size(); ++i) {
    if (dfa.states[i].final && place[i] != to) link(place[i], to);
    for (const Edge& e : dfa.states[i].edges) edge(place[i], e.low, e.high, place[e.to]);
  }
}

void NfaBuilder::add_network(const Node& node, std::uint32_t from, std::uint32_t to) {
  std::vector<std::uint32_t> place(node.n_places);
  for (std::uint32_t& state : place) state = add_state();
  link(from, place[0]);
  link(place[1], to);
  for (const Arc& arc : node.arcs) {
    if (arc.node) {
      add(*arc.node, place[arc.from], place[arc.to]);
    } else {
      link(place[arc.from], place[arc.to]);
    }
  }
}

void NfaBuilder::add_rule(RuleId rule, std::uint32_t from, std::uint32_t to) {
  if (rule < inlined_.size() && inlined_[rule] != 0) return add(*grammar_.rules()[rule].node, from, to);
  edge(from, kCallSymbol + rule, kCallSymbol + rule, to);
}

}  // namespace quern::grammar
