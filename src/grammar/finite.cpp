#include "grammar/finite.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::grammar {

namespace {

using Set = std::vector<std::uint32_t>;

// States of the nondeterministic automaton looked at while one is made deterministic: few states
// of many members each would else take minutes. About a second.
constexpr std::size_t kMaxWork = 60'000'000;

struct SetHash {
  std::size_t operator()(const Set& set) const {
    std::size_t hash = set.size();
    for (const std::uint32_t value : set) hash = (hash ^ value) * 0x9E3779B97F4A7C15u + (hash >> 29);
    return hash;
  }
};

void check_states(std::size_t n, const FiniteLimits& limits) {
  if (n > limits.max_states)
    base::reject(limits.where, "too large an automaton", {},
                 base::cat("at most ", limits.max_states, " states"));
}

class Determinizer {
 public:
  Determinizer(const Nfa& nfa, const FiniteLimits& limits)
      : nfa_(nfa), limits_(limits), seen_(nfa.states.size(), 0) {
    for (const Nfa::State& state : nfa.states)
      for (const Nfa::Link& link : state.links) has_ends_ = has_ends_ || link.when == Nfa::When::at_end;
  }

  Dfa run() {
    Set start = closure({nfa_.start}, true, false);
    const bool start_final = accepts(start, true);
    intern(std::move(start));
    dfa_.states[0].final = start_final;
    for (std::size_t i = 0; i < sets_.size(); ++i) expand(i);
    return std::move(dfa_);
  }

 private:
  Set closure(Set work, bool begin, bool end) {
    ++generation_;
    Set out;
    for (const std::uint32_t state : work) seen_[state] = generation_;
    while (!work.empty()) {
      const std::uint32_t state = work.back();
      work.pop_back();
      out.push_back(state);
      for (const Nfa::Link& link : nfa_.states[state].links) {
        if (link.when == Nfa::When::at_begin && !begin) continue;
        if (link.when == Nfa::When::at_end && !end) continue;
        if (seen_[link.to] == generation_) continue;
        seen_[link.to] = generation_;
        work.push_back(link.to);
      }
    }
    work_ += out.size();
    if (work_ > kMaxWork) base::reject(limits_.where, "too large an automaton: repetitions within repetitions");
    // Only states with a future of their own tell sets apart.
    std::erase_if(out, [&](std::uint32_t state) {
      const Nfa::State& s = nfa_.states[state];
      const auto at_end = [](const Nfa::Link& link) { return link.when == Nfa::When::at_end; };
      return state != nfa_.final && s.edges.empty() &&
             std::none_of(s.links.begin(), s.links.end(), at_end);
    });
    std::sort(out.begin(), out.end());
    return out;
  }

  bool accepts(const Set& set, bool begin) {
    if (!has_ends_) return std::binary_search(set.begin(), set.end(), nfa_.final);
    const Set all = closure(set, begin, true);
    return std::binary_search(all.begin(), all.end(), nfa_.final);
  }

  std::uint32_t intern(Set set) {
    const auto [found, added] =
        ids_.try_emplace(std::move(set), static_cast<std::uint32_t>(sets_.size()));
    if (added) {
      sets_.push_back(&found->first);
      check_states(sets_.size(), limits_);
      dfa_.states.emplace_back();
      dfa_.states.back().final = accepts(found->first, false);
    }
    return found->second;
  }

  void expand(std::size_t index) {
    edges_.clear();
    for (const std::uint32_t state : *sets_[index]) {
      const auto& edges = nfa_.states[state].edges;
      edges_.insert(edges_.end(), edges.begin(), edges.end());
    }
    cuts_.clear();
    for (const Edge& edge : edges_) {
      cuts_.push_back(edge.low);
      cuts_.push_back(edge.high + 1);
    }
    std::sort(cuts_.begin(), cuts_.end());
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
    std::sort(edges_.begin(), edges_.end(),
              [](const Edge& a, const Edge& b) { return a.low < b.low; });
    std::vector<Edge> active, out;
    std::size_t next = 0;
    for (std::size_t cut = 0; cut + 1 < cuts_.size(); ++cut) {
      const Symbol low = cuts_[cut], high = cuts_[cut + 1] - 1;
      std::erase_if(active, [&](const Edge& edge) { return edge.high < low; });
      for (; next < edges_.size() && edges_[next].low <= low; ++next) active.push_back(edges_[next]);
      if (active.empty()) continue;
      Set targets;
      for (const Edge& edge : active) targets.push_back(edge.to);
      std::sort(targets.begin(), targets.end());
      targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
      const std::uint32_t to = intern(closure(std::move(targets), false, false));
      if (!out.empty() && out.back().to == to && out.back().high + 1 == low) {
        out.back().high = high;
      } else {
        out.push_back({low, high, to});
      }
    }
    dfa_.states[index].edges = std::move(out);
  }

  const Nfa& nfa_;
  const FiniteLimits& limits_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t generation_ = 0;
  std::size_t work_ = 0;
  bool has_ends_ = false;  // links at the end of the text
  std::unordered_map<Set, std::uint32_t, SetHash> ids_;
  std::vector<const Set*> sets_;
  std::vector<Edge> edges_;
  std::vector<Symbol> cuts_;
  Dfa dfa_;
};

// States in an order where, but for loops, targets come before sources.
std::vector<std::uint32_t> post_order(const Dfa& dfa) {
  std::vector<std::uint32_t> order;
  std::vector<std::uint8_t> seen(dfa.states.size(), 0);
  std::vector<std::pair<std::uint32_t, std::size_t>> work{{0, 0}};
  seen[0] = 1;
  while (!work.empty()) {
    auto& [state, next] = work.back();
    const auto& edges = dfa.states[state].edges;
    if (next == edges.size()) {
      order.push_back(state);
      work.pop_back();
      continue;
    }
    const std::uint32_t to = edges[next++].to;
    if (seen[to] != 0) continue;
    seen[to] = 1;
    work.emplace_back(to, 0);
  }
  return order;
}

std::vector<std::uint8_t> live_states(const Dfa& dfa) {
  std::vector<std::vector<std::uint32_t>> sources(dfa.states.size());
  std::vector<std::uint8_t> live(dfa.states.size(), 0);
  std::vector<std::uint32_t> work;
  for (std::uint32_t state = 0; state < dfa.states.size(); ++state) {
    for (const Edge& edge : dfa.states[state].edges) sources[edge.to].push_back(state);
    if (dfa.states[state].final) work.push_back(state);
  }
  for (const std::uint32_t state : work) live[state] = 1;
  while (!work.empty()) {
    const std::uint32_t state = work.back();
    work.pop_back();
    for (const std::uint32_t source : sources[state]) {
      if (live[source] != 0) continue;
      live[source] = 1;
      work.push_back(source);
    }
  }
  return live;
}

void join_edges(std::vector<Edge>& edges) {
  std::vector<Edge> out;
  for (const Edge& edge : edges) {
    if (!out.empty() && out.back().to == edge.to && out.back().high + 1 == edge.low) {
      out.back().high = edge.high;
    } else {
      out.push_back(edge);
    }
  }
  edges = std::move(out);
}

}  // namespace

bool Dfa::accepts(std::u32string_view text) const {
  if (states.empty()) return false;
  std::uint32_t state = 0;
  for (const char32_t c : text) {
    const auto& edges = states[state].edges;
    const auto found = std::find_if(edges.begin(), edges.end(), [&](const Edge& edge) {
      return edge.low <= c && c <= edge.high;
    });
    if (found == edges.end()) return false;
    state = found->to;
  }
  return states[state].final;
}

Dfa determinize(const Nfa& nfa, const FiniteLimits& limits) {
  Dfa dfa = Determinizer(nfa, limits).run();
  shrink(dfa);
  return dfa;
}

void shrink(Dfa& dfa) {
  if (dfa.states.empty()) return;
  const std::vector<std::uint8_t> live = live_states(dfa);
  if (live[0] == 0) {
    dfa.states.clear();
    return;
  }
  for (Dfa::State& state : dfa.states)
    std::erase_if(state.edges, [&](const Edge& edge) { return live[edge.to] == 0; });
  const std::vector<std::uint32_t> order = post_order(dfa);
  std::vector<std::uint32_t> same(dfa.states.size());
  for (std::uint32_t i = 0; i < same.size(); ++i) same[i] = i;
  std::unordered_map<Set, std::uint32_t, SetHash> known;
  for (const std::uint32_t state : order) {
    Dfa::State& s = dfa.states[state];
    for (Edge& edge : s.edges) edge.to = same[edge.to];
    join_edges(s.edges);
    Set key{s.final ? 1u : 0u};
    for (const Edge& edge : s.edges) key.insert(key.end(), {edge.low, edge.high, edge.to});
    same[state] = known.try_emplace(std::move(key), state).first->second;
  }
  // Renumber what is reachable from the start, which becomes state 0.
  std::vector<std::uint32_t> number(dfa.states.size(), UINT32_MAX);
  std::vector<std::uint32_t> kept{same[0]};
  number[same[0]] = 0;
  std::vector<Dfa::State> states;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    Dfa::State state = std::move(dfa.states[kept[i]]);
    for (Edge& edge : state.edges) {
      const std::uint32_t to = same[edge.to];
      if (number[to] == UINT32_MAX) {
        number[to] = static_cast<std::uint32_t>(kept.size());
        kept.push_back(to);
      }
      edge.to = number[to];
    }
    join_edges(state.edges);
    states.push_back(std::move(state));
  }
  dfa.states = std::move(states);
}

Dfa product(const Dfa& a, const Dfa& b, Product kind, const FiniteLimits& limits) {
  constexpr std::uint32_t kDead = UINT32_MAX;  // of b
  if (a.empty() || (b.empty() && kind == Product::both)) return {};
  Dfa out;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> ids;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  const auto intern = [&](std::uint32_t x, std::uint32_t y) {
    const auto [found, added] = ids.try_emplace({x, y}, static_cast<std::uint32_t>(pairs.size()));
    if (added) {
      pairs.emplace_back(x, y);
      check_states(pairs.size(), limits);
      out.states.emplace_back();
      const bool second = y != kDead && b.states[y].final;
      out.states.back().final = a.states[x].final && second == (kind == Product::both);
    }
    return found->second;
  };
  intern(0, b.empty() ? kDead : 0);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto [x, y] = pairs[i];
    static const std::vector<Edge> kNone;
    const std::vector<Edge>& others = y == kDead ? kNone : b.states[y].edges;
    std::vector<Edge> edges;
    std::size_t other = 0;
    for (const Edge& edge : a.states[x].edges) {
      Symbol low = edge.low;
      while (low <= edge.high) {
        while (other < others.size() && others[other].high < low) ++other;
        const bool inside = other < others.size() && others[other].low <= low;
        Symbol high = edge.high;
        if (inside) high = std::min(high, others[other].high);
        else if (other < others.size()) high = std::min(high, others[other].low - 1);
        if (inside || kind == Product::first_only)
          edges.push_back({low, high, intern(edge.to, inside ? others[other].to : kDead)});
        low = high + 1;
      }
    }
    out.states[i].edges = std::move(edges);
  }
  shrink(out);
  return out;
}

}  // namespace quern::grammar
