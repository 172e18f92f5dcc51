#include "grammar/automaton.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "grammar/least_costs.hpp"
#include "grammar/limits.hpp"
#include "grammar/nfa_builder.hpp"
#include "grammar/rule_set.hpp"

namespace quern::grammar {

namespace {

using Bytes = std::bitset<256>;

}  // namespace

// Lays the rules' automata into flat tables, then computes what is known of bytes.
class AutomatonBuilder {
 public:
  AutomatonBuilder(const Grammar& grammar, Automaton& out)
      : grammar_(grammar), out_(out), rules_(rule_automata(grammar, rules_to_inline(grammar))) {}

  void run() {
    out_.where_ = grammar_.where();
    out_.patterns_ = grammar_.tokens();
    number_rules();
    for (RuleId rule = 0; rule < rules_.size(); ++rule) add_rule(rule);
    out_.root_ = start_[grammar_.root()];
    add_needs();
    add_classes();
    add_follow();
  }

 private:
  void number_rules() {
    start_.assign(rules_.size(), 0);
    number_.assign(rules_.size(), 0);
    std::uint32_t next = 0;
    for (RuleId rule = 0; rule < rules_.size(); ++rule) {
      start_[rule] = next;
      next += static_cast<std::uint32_t>(rules_[rule].states.size());
      if (rules_[rule].states.empty()) continue;
      number_[rule] = static_cast<std::uint32_t>(out_.names_.size());
      out_.names_.push_back(grammar_.rules()[rule].name);
    }
    out_.states_.reserve(next);
  }

  void add_rule(RuleId rule) {
    const std::uint32_t base = start_[rule];
    for (const Dfa::State& from : rules_[rule].states) {
      Automaton::State state{};
      state.first_edge = static_cast<std::uint32_t>(out_.edges_.size());
      state.first_call = static_cast<std::uint32_t>(out_.calls_.size());
      state.first_token = static_cast<std::uint32_t>(out_.tokens_.size());
      state.rule = number_[rule];
      state.final = from.final;
      state.tail = from.final && from.edges.empty();
      for (const Edge& edge : from.edges) add_edge(edge, base + edge.to);
      state.n_edges = static_cast<std::uint16_t>(out_.edges_.size() - state.first_edge);
      state.n_calls = static_cast<std::uint32_t>(out_.calls_.size() - state.first_call);
      state.n_tokens = static_cast<std::uint32_t>(out_.tokens_.size() - state.first_token);
      out_.states_.push_back(state);
    }
  }

  void add_edge(const Edge& edge, std::uint32_t to) {
    if (edge.low < kCallSymbol) {
      out_.edges_.push_back(
          {static_cast<std::uint8_t>(edge.low), static_cast<std::uint8_t>(edge.high), to});
      return;
    }
    for (Symbol symbol = edge.low; symbol <= edge.high; ++symbol) {
      if (symbol < kTokenSymbol) {
        out_.calls_.push_back({start_[symbol - kCallSymbol], to});
      } else {
        out_.tokens_.push_back({symbol - kTokenSymbol, to});
      }
    }
  }

  void add_needs() {
    const auto needs = least_costs(out_, 0, [&](std::uint64_t inside, std::uint64_t after, const Automaton::Call& call) {
      return std::max(inside + (out_.states_[call.to].tail ? 0 : 1), after);
    });
    for (std::size_t i = 0; i < needs.size(); ++i)
      out_.states_[i].need = static_cast<std::uint32_t>(std::min<std::uint64_t>(needs[i], kMaxStackDepth + 1));
    if (out_.states_[out_.root_].need > kMaxStackDepth)
      base::reject(out_.where_, "every text needs too many rules open at once", {}, base::cat("at most ", kMaxStackDepth));
  }

  void add_classes() {
    Bytes cuts;  // a new class begins
    for (const Automaton::ByteEdge& edge : out_.edges_) {
      cuts.set(edge.low);
      if (edge.high < 255) cuts.set(edge.high + 1u);
    }
    std::size_t next = 0;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (byte != 0 && cuts.test(byte)) ++next;
      out_.classes_[byte] = static_cast<std::uint8_t>(next);
    }
    out_.n_classes_ = next + 1;
  }

  // Bytes that may come at a state, without what follows its rule; `ends`: the rule may end first.
  struct First {
    Bytes bytes;
    bool ends = false;
  };

  First first_of(std::uint32_t id, const std::vector<First>& rules) const {
    First first;
    std::vector<std::uint32_t> work{id};
    std::unordered_set<std::uint32_t> seen{id};
    while (!work.empty()) {
      const Automaton::State& state = out_.states_[work.back()];
      work.pop_back();
      first.ends = first.ends || state.final;
      for (std::uint32_t i = 0; i < state.n_edges; ++i) {
        const Automaton::ByteEdge& edge = out_.edges(state)[i];
        for (unsigned byte = edge.low; byte <= edge.high; ++byte) first.bytes.set(byte);
      }
      for (std::uint32_t i = 0; i < state.n_calls; ++i) {
        const Automaton::Call& call = out_.calls(state)[i];
        const First& called = rules[out_.states_[call.start].rule];
        first.bytes |= called.bytes;
        if (called.ends && seen.insert(call.to).second) work.push_back(call.to);
      }
    }
    return first;
  }

  // A rule is looked at again whenever one that it calls has changed.
  std::vector<First> first_of_rules() const {
    std::vector<First> first(out_.names_.size());
    std::vector<std::uint32_t> starts(first.size()), work;
    for (RuleId rule = 0; rule < rules_.size(); ++rule)
      if (!rules_[rule].states.empty()) starts[number_[rule]] = start_[rule];
    std::vector<std::vector<std::uint32_t>> callers(first.size());
    for (const Automaton::State& state : out_.states_)
      for (std::uint32_t i = 0; i < state.n_calls; ++i) {
        auto& list = callers[out_.states_[out_.calls(state)[i].start].rule];
        if (list.empty() || list.back() != state.rule) list.push_back(state.rule);
      }
    for (std::uint32_t rule = 0; rule < first.size(); ++rule) work.push_back(rule);
    while (!work.empty()) {
      const std::uint32_t rule = work.back();
      work.pop_back();
      const First next = first_of(starts[rule], first);
      if (next.bytes == first[rule].bytes && next.ends == first[rule].ends) continue;
      first[rule] = next;
      work.insert(work.end(), callers[rule].begin(), callers[rule].end());
    }
    return first;
  }

  void add_follow() {
    const std::vector<First> first = first_of_rules();
    out_.follow_.assign(first.size(), {});
    // inherits[r]: rules whose follow is part of r's, for r is called at their end.
    std::vector<std::vector<std::uint32_t>> heirs(first.size());
    std::map<std::uint32_t, First> known;
    for (const Automaton::State& state : out_.states_)
      for (std::uint32_t i = 0; i < state.n_calls; ++i) {
        const Automaton::Call& call = out_.calls(state)[i];
        const std::uint32_t called = out_.states_[call.start].rule;
        auto found = known.find(call.to);
        if (found == known.end()) found = known.emplace(call.to, first_of(call.to, first)).first;
        out_.follow_[called] |= found->second.bytes;
        if (found->second.ends) heirs[state.rule].push_back(called);
      }
    std::vector<std::uint32_t> work;
    for (std::uint32_t rule = 0; rule < first.size(); ++rule) work.push_back(rule);
    while (!work.empty()) {
      const std::uint32_t rule = work.back();
      work.pop_back();
      for (const std::uint32_t heir : heirs[rule]) {
        const Bytes joined = out_.follow_[heir] | out_.follow_[rule];
        if (joined == out_.follow_[heir]) continue;
        out_.follow_[heir] = joined;
        work.push_back(heir);
      }
    }
  }

  const Grammar& grammar_;
  Automaton& out_;
  std::vector<Dfa> rules_;
  std::vector<std::uint32_t> start_, number_;
};

Automaton::Automaton(const Grammar& grammar) { AutomatonBuilder(grammar, *this).run(); }

}  // namespace quern::grammar
