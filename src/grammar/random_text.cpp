#include "grammar/random_text.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "grammar/least_costs.hpp"
#include "grammar/machine.hpp"
#include "sampling/random.hpp"

namespace quern::grammar {

namespace {

constexpr std::uint64_t kFar = std::uint64_t{1} << 40;

}  // namespace

RandomText::RandomText(const Automaton& automaton)
    : automaton_(automaton),
      to_end_(least_costs(automaton, 1, [](std::uint64_t inside, std::uint64_t after, const Automaton::Call&) {
        return std::min(inside + after, kFar);
      })) {}

std::string RandomText::make(std::uint64_t seed, std::size_t length) const {
  sampling::Random random(seed);
  Machine machine(automaton_);
  Machine::SetId set = machine.start();
  std::string text;
  const auto distance = [&](Machine::SetId id) {
    std::uint64_t best = machine.escaped(id) ? 0 : kFar;
    for (const Machine::Config& config : machine.configs(id)) {
      std::uint64_t sum = to_end_[config.state];
      for (Machine::FrameId frame = config.frame; frame != Machine::kBase; frame = machine.parent(frame))
        sum += to_end_[machine.return_state(frame)];
      best = std::min(best, sum);
    }
    return best;
  };
  for (;;) {
    const bool closing = text.size() >= length;
    if (machine.escaped(set) && (closing || random.uniform() < 0.2)) return text;
    std::vector<std::pair<std::uint8_t, Machine::SetId>> ways;
    std::uint64_t nearest = kFar;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const Machine::SetId next = machine.step(set, static_cast<std::uint8_t>(byte));
      if (next == Machine::kDead) continue;
      const std::uint64_t far = closing ? distance(next) : 0;
      if (far < nearest) ways.clear();
      nearest = std::min(nearest, far);
      if (far == nearest) ways.emplace_back(static_cast<std::uint8_t>(byte), next);
    }
    if (ways.empty()) {
      if (machine.escaped(set)) return text;
      base::reject(automaton_.where(), "no text was found: tokens or too many open rules are needed");
    }
    const auto pick = static_cast<std::size_t>(random.uniform() * static_cast<double>(ways.size()));
    text += static_cast<char>(ways[pick].first);
    set = ways[pick].second;
  }
}

}  // namespace quern::grammar
