#include "grammar/rule_set.hpp"

#include <algorithm>
#include <functional>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "grammar/limits.hpp"
#include "grammar/nfa_builder.hpp"

namespace quern::grammar {

namespace {

using base::cat;
using Flags = std::vector<std::uint8_t>;

constexpr std::size_t kNever = SIZE_MAX;
constexpr std::size_t kInlineSize = 48;  // expressions of a rule that is written out where it is used

// Sizes of rules with their calls written out; kNever for what is large, loops or recurs.
class InlineSizes {
 public:
  explicit InlineSizes(const Grammar& grammar)
      : grammar_(grammar), sizes_(grammar.rules().size(), kNever), state_(sizes_.size(), 0) {}

  // Rules reach one another, so the walk keeps a stack of its own.
  std::size_t of_rule(RuleId root) {
    std::vector<RuleId> work{root};
    while (!work.empty()) {
      const RuleId rule = work.back();
      if (state_[rule] == 2) {
        work.pop_back();
        continue;
      }
      const Rule& r = grammar_.rules()[rule];
      if (state_[rule] == 0 && r.node && r.inlining == Inlining::automatic) {
        state_[rule] = 1;
        std::vector<RuleId> called;
        calls(*r.node, called);
        for (const RuleId other : called)
          if (state_[other] == 0) work.push_back(other);
        continue;
      }
      // What is still open among the calls is on the way from the root: a cycle.
      if (state_[rule] == 1) sizes_[rule] = of(*r.node);
      if (sizes_[rule] > kInlineSize) sizes_[rule] = kNever;
      state_[rule] = 2;
      work.pop_back();
    }
    return sizes_[root];
  }

 private:
  void calls(NodeId id, std::vector<RuleId>& out) const {
    const Node& node = grammar_.node(id);
    if (node.kind == NodeKind::rule) out.push_back(node.target);
    for (const NodeId child : node.children) calls(child, out);
    for (const Arc& arc : node.arcs)
      if (arc.node) calls(*arc.node, out);
  }

  std::size_t of(NodeId id) const {
    const Node& node = grammar_.node(id);
    if (node.kind == NodeKind::network) return kNever;
    if (node.kind == NodeKind::rule) return state_[node.target] == 2 ? sizes_[node.target] : kNever;
    if (node.kind == NodeKind::repeat && node.max == kUnbounded) return kNever;
    std::size_t size = 1 + node.text.size() / 4;
    for (const NodeId child : node.children) {
      const std::size_t part = of(child);
      if (part == kNever) return kNever;
      size += part;
    }
    if (node.kind == NodeKind::repeat) size *= std::max<std::size_t>(node.max, 1);
    return size > kInlineSize ? kNever : size;
  }

  const Grammar& grammar_;
  std::vector<std::size_t> sizes_;
  Flags state_;  // 0 not seen, 1 open, 2 known
};

bool is_call(const Edge& edge) { return edge.low >= kCallSymbol && edge.low < kTokenSymbol; }

// Calls f(rule, to) for each call that an edge stands for.
template <class F>
void each_call(const Edge& edge, F f) {
  if (!is_call(edge)) return;
  for (Symbol symbol = edge.low; symbol <= edge.high; ++symbol) f(symbol - kCallSymbol);
}

// Whether a rule's end is reached by its own edges (when `by_bytes`) and calls of rules in `set`.
bool reaches_end(const Dfa& dfa, const Flags& set, bool by_bytes) {
  if (dfa.states.empty()) return false;
  Flags seen(dfa.states.size(), 0);
  std::vector<std::uint32_t> work{0};
  seen[0] = 1;
  while (!work.empty()) {
    const Dfa::State& state = dfa.states[work.back()];
    work.pop_back();
    if (state.final) return true;
    for (const Edge& edge : state.edges) {
      bool passable = by_bytes && !is_call(edge);
      each_call(edge, [&](RuleId rule) { passable = passable || set[rule] != 0; });
      if (!passable || seen[edge.to] != 0) continue;
      seen[edge.to] = 1;
      work.push_back(edge.to);
    }
  }
  return false;
}

std::vector<std::vector<RuleId>> callers_of(const std::vector<Dfa>& rules) {
  std::vector<std::vector<RuleId>> callers(rules.size());
  for (RuleId rule = 0; rule < rules.size(); ++rule)
    for (const Dfa::State& state : rules[rule].states)
      for (const Edge& edge : state.edges)
        each_call(edge, [&](RuleId called) {
          if (callers[called].empty() || callers[called].back() != rule)
            callers[called].push_back(rule);
        });
  return callers;
}

// The least set of rules that reach their end through each other.
Flags rules_that_end(const std::vector<Dfa>& rules, bool by_bytes) {
  const auto callers = callers_of(rules);
  Flags set(rules.size(), 0), queued(rules.size(), 1);
  std::vector<RuleId> work;
  for (RuleId rule = 0; rule < rules.size(); ++rule) work.push_back(rule);
  while (!work.empty()) {
    const RuleId rule = work.back();
    work.pop_back();
    queued[rule] = 0;
    if (set[rule] != 0 || !reaches_end(rules[rule], set, by_bytes)) continue;
    set[rule] = 1;
    for (const RuleId caller : callers[rule]) {
      if (set[caller] != 0 || queued[caller] != 0) continue;
      queued[caller] = 1;
      work.push_back(caller);
    }
  }
  return set;
}

void drop_calls(std::vector<Dfa>& rules, const Flags& kept) {
  for (RuleId rule = 0; rule < rules.size(); ++rule) {
    Dfa& dfa = rules[rule];
    if (kept[rule] == 0) dfa.states.clear();
    for (Dfa::State& state : dfa.states) {
      std::vector<Edge> edges;
      for (const Edge& edge : state.edges) {
        if (!is_call(edge)) edges.push_back(edge);
        each_call(edge, [&](RuleId called) {
          const Symbol symbol = kCallSymbol + called;
          if (kept[called] != 0) edges.push_back({symbol, symbol, edge.to});
        });
      }
      state.edges = std::move(edges);
    }
    shrink(dfa);
  }
}

// Rules that may be called before a rule has matched anything.
std::vector<RuleId> leftmost_calls(const Dfa& dfa, const Flags& nullable) {
  std::vector<RuleId> out;
  if (dfa.states.empty()) return out;
  Flags seen(dfa.states.size(), 0);
  std::vector<std::uint32_t> work{0};
  seen[0] = 1;
  while (!work.empty()) {
    const Dfa::State& state = dfa.states[work.back()];
    work.pop_back();
    for (const Edge& edge : state.edges)
      each_call(edge, [&](RuleId rule) {
        out.push_back(rule);
        if (nullable[rule] == 0 || seen[edge.to] != 0) return;
        seen[edge.to] = 1;
        work.push_back(edge.to);
      });
  }
  return out;
}

void check_left_recursion(const Grammar& grammar, const std::vector<Dfa>& rules) {
  const Flags nullable = rules_that_end(rules, false);
  std::vector<std::vector<RuleId>> next;
  for (const Dfa& dfa : rules) next.push_back(leftmost_calls(dfa, nullable));
  Flags state(rules.size(), 0);  // 1 on the path, 2 done
  for (RuleId root = 0; root < rules.size(); ++root) {
    if (state[root] != 0) continue;
    std::vector<std::pair<RuleId, std::size_t>> path{{root, 0}};
    state[root] = 1;
    while (!path.empty()) {
      auto& [rule, at] = path.back();
      if (at == next[rule].size()) {
        state[rule] = 2;
        path.pop_back();
        continue;
      }
      const RuleId called = next[rule][at++];
      if (state[called] == 2) continue;
      if (state[called] == 0) {
        state[called] = 1;
        path.emplace_back(called, 0);
        continue;
      }
      std::string names = grammar.rules()[called].name;
      for (std::size_t i = path.size(); i-- > 0 && path[i].first != called;)
        names = cat(grammar.rules()[path[i].first].name, " -> ", names);
      names = cat(grammar.rules()[called].name, " -> ", names);
      base::reject(grammar.where(),
                   cat("left recursion: a rule begins with itself (", base::printable(names, 160),
                       "); write it with repetition or with the recursive call at the end"));
    }
  }
}

}  // namespace

std::vector<std::uint8_t> rules_to_inline(const Grammar& grammar) {
  InlineSizes sizes(grammar);
  Flags out(grammar.rules().size(), 0);
  for (RuleId rule = 0; rule < out.size(); ++rule)
    out[rule] = rule != grammar.root() && sizes.of_rule(rule) != kNever ? 1 : 0;
  return out;
}

std::vector<Dfa> rule_automata(const Grammar& grammar, const std::vector<std::uint8_t>& inlined) {
  std::vector<Dfa> rules(grammar.rules().size());
  Flags needed(rules.size(), 0);
  std::vector<RuleId> work{grammar.root()};
  needed[grammar.root()] = 1;
  std::size_t n_states = 0;
  while (!work.empty()) {
    const RuleId rule = work.back();
    work.pop_back();
    QUERN_ASSERT(grammar.rules()[rule].node.has_value());
    const FiniteLimits limits{grammar.where(), kMaxStates - n_states};
    const Nfa nfa =
        NfaBuilder(grammar, Alphabet::bytes, inlined, limits).build(*grammar.rules()[rule].node);
    rules[rule] = determinize(nfa, limits);
    n_states += rules[rule].states.size();
    for (const Dfa::State& state : rules[rule].states)
      for (const Edge& edge : state.edges)
        each_call(edge, [&](RuleId called) {
          if (needed[called] != 0) return;
          needed[called] = 1;
          work.push_back(called);
        });
  }
  drop_calls(rules, rules_that_end(rules, true));
  if (rules[grammar.root()].states.empty())
    base::reject(grammar.where(), "no text matches: nothing could be written");
  check_left_recursion(grammar, rules);
  return rules;
}

}  // namespace quern::grammar
