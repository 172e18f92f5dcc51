// The least cost from each state of an automaton to the end of its rule, where costs never fall
// along a way (Knuth, 1977: Dijkstra's algorithm for grammars).
#pragma once

#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "grammar/automaton.hpp"

namespace quern::grammar {

// edge: cost of an edge (a byte or a token). call(inside, after, call): cost of a way through a
// called rule, from the costs of the rule and of going on; not below either.
template <class Call>
std::vector<std::uint64_t> least_costs(const Automaton& automaton, std::uint64_t edge, Call call) {
  constexpr std::uint64_t kUnknown = UINT64_MAX;
  struct Use {  // of a state's cost by another state: through an edge, or through its n-th call
    std::uint32_t state, n_call;
  };
  constexpr std::uint32_t kEdge = UINT32_MAX;
  const auto n = static_cast<std::uint32_t>(automaton.n_states());
  std::vector<std::vector<Use>> uses(n);
  std::vector<std::uint64_t> costs(n, kUnknown);
  using Entry = std::pair<std::uint64_t, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  for (std::uint32_t id = 0; id < n; ++id) {
    const Automaton::State& state = automaton.state(id);
    for (std::uint32_t i = 0; i < state.n_edges; ++i) uses[automaton.edges(state)[i].to].push_back({id, kEdge});
    for (std::uint32_t i = 0; i < state.n_tokens; ++i) uses[automaton.tokens(state)[i].to].push_back({id, kEdge});
    for (std::uint32_t i = 0; i < state.n_calls; ++i) {
      uses[automaton.calls(state)[i].start].push_back({id, i});
      uses[automaton.calls(state)[i].to].push_back({id, i});
    }
    if (state.final) queue.push({0, id});
  }
  while (!queue.empty()) {
    const auto [cost, id] = queue.top();
    queue.pop();
    if (costs[id] != kUnknown) continue;
    costs[id] = cost;
    for (const Use& use : uses[id]) {
      if (costs[use.state] != kUnknown) continue;
      if (use.n_call == kEdge) {
        queue.push({cost + edge, use.state});
        continue;
      }
      const Automaton::Call& way = automaton.calls(automaton.state(use.state))[use.n_call];
      if (costs[way.start] != kUnknown && costs[way.to] != kUnknown)
        queue.push({call(costs[way.start], costs[way.to], way), use.state});
    }
  }
  return costs;
}

}  // namespace quern::grammar
