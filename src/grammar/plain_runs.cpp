#include "grammar/plain_runs.hpp"

#include <algorithm>

namespace quern::grammar {

bool is_plain(char32_t c) { return c >= 0x20 && c != '"' && c != '\\'; }

PlainRuns::PlainRuns(Machine& machine) : machine_(machine) {
  const CharSet special{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  const CharSet plain = special.complement();
  for (const CharRange& range : plain.ranges())
    utf8_sequences(range, [&](const ByteSequence& sequence) { sequences_.push_back(sequence); });
}

// The one set that all ordinary characters lead to, if there is one that stays within the rule and
// needs no deeper stack.
std::optional<Machine::SetId> PlainRuns::make_next(Machine::SetId set) {
  std::optional<Machine::SetId> common;
  for (const ByteSequence& sequence : sequences_) {
    Machine::SetId at = set;
    for (std::size_t i = 0; i < sequence.size; ++i) {
      const ByteRange& range = sequence.bytes[i];
      const Machine::SetId to = machine_.step(at, range.low);
      for (unsigned byte = range.low; byte <= range.high; ++byte)
        if (machine_.step(at, static_cast<std::uint8_t>(byte)) != to) return std::nullopt;
      if (to == Machine::kDead || machine_.escaped(to) || machine_.need(to) > machine_.need(set))
        return std::nullopt;
      at = to;
    }
    if (common && *common != at) return std::nullopt;
    common = at;
  }
  return common;
}

std::optional<Machine::SetId> PlainRuns::next(Machine::SetId set) {
  const auto found = nexts_.find(set);
  if (found != nexts_.end()) return found->second;
  return nexts_[set] = make_next(set);
}

void PlainRuns::forget() {
  runs_.clear();
  nexts_.clear();
}

std::uint8_t PlainRuns::of(Machine::SetId set) {
  const auto known = [&](Machine::SetId id) {
    if (id >= runs_.size()) runs_.resize(id + 1024, kNotPlain);
    return runs_[id];
  };
  if (known(set) != kNotPlain) return runs_[set];
  std::vector<Machine::SetId> chain;
  std::size_t run = 0;  // of what follows the chain
  for (Machine::SetId at = set;;) {
    if (known(at) != kNotPlain) {
      run = runs_[at];
      break;
    }
    chain.push_back(at);
    const auto to = next(at);
    if (!to) {
      runs_[at] = 0;
      chain.pop_back();
      break;
    }
    const bool loops = *to == at || *to == set;
    if (loops || chain.size() >= kMaxPlain) {
      run = kMaxPlain;
      // Of a long chain only the start is certain; the rest is looked at when it is reached.
      if (!loops) chain.resize(1);
      break;
    }
    at = *to;
  }
  for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
    run = std::min<std::size_t>(run + 1, kMaxPlain);
    runs_[*at] = static_cast<std::uint8_t>(run);
  }
  return runs_[set];
}

}  // namespace quern::grammar
