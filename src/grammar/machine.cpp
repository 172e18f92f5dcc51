#include "grammar/machine.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "grammar/limits.hpp"

namespace quern::grammar {

namespace {

std::uint64_t key_of(std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; }

}  // namespace

std::size_t Machine::SetHash::operator()(SetId id) const {
  const Set& set = machine->sets_[id];
  std::uint64_t hash = set.escaped ? 1 : 2;
  for (const Config& config : machine->configs(id)) {
    hash = (hash ^ key_of(config.state, config.frame)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 31;
  }
  return hash;
}

bool Machine::SetEqual::operator()(SetId a, SetId b) const {
  const auto x = machine->configs(a), y = machine->configs(b);
  return machine->escaped(a) == machine->escaped(b) && std::equal(x.begin(), x.end(), y.begin(), y.end());
}

Machine::Machine(const Automaton& automaton)
    : automaton_(automaton),
      n_classes_(automaton.n_classes()),
      ids_(64, SetHash{this}, SetEqual{this}) {
  clear();
}

void Machine::clear() {
  ids_.clear();
  frame_ids_.clear();
  configs_.clear();
  sets_.clear();
  next_.clear();
  frames_.assign(1, {0, kBase, 0, 0, kUnknown});
  made_.clear();
  escaped_ = false;
  intern();  // the dead set is number 0
}

Machine::SetId Machine::start() {
  work_.assign(1, {automaton_.root(), kBase});
  return close();
}

Machine::SetId Machine::alone(Config config) {
  made_.assign(1, config);
  escaped_ = false;
  return intern();
}

Machine::SetId Machine::below(FrameId frame) {
  if (frames_[frame].below == kUnknown) {
    work_.assign(1, {frames_[frame].state, frames_[frame].parent});
    const SetId set = close();
    frames_[frame].below = set;
  }
  return frames_[frame].below;
}

Machine::FrameId Machine::push(std::uint32_t state, FrameId parent) {
  const auto [found, added] =
      frame_ids_.try_emplace(key_of(state, parent), static_cast<FrameId>(frames_.size()));
  if (added) {
    const Frame& below = frames_[parent];
    const std::uint32_t own = std::max(below.need, below.depth + automaton_.state(state).need);
    frames_.push_back({state, parent, below.depth + 1, own, kUnknown});
  }
  return found->second;
}

std::uint32_t Machine::need(const Config& config) const {
  const Frame& frame = frames_[config.frame];
  return std::max(frame.need, frame.depth + automaton_.state(config.state).need);
}

// Follows calls and returns until only states with edges are left. Ends, for no rule calls itself
// before it has read something, and what was seen is not followed again. Ways that could not come
// to an end within the limit of depth are left out, so the limit makes no dead ends.
Machine::SetId Machine::close() {
  made_.clear();
  visited_.clear();
  escaped_ = false;
  while (!work_.empty()) {
    const Config config = work_.back();
    work_.pop_back();
    if (!visited_.insert(key_of(config.state, config.frame)).second) continue;
    if (visited_.size() > kMaxStacks * 4)
      base::reject(automaton_.where(), "too ambiguous: one text can be read in too many ways", {},
                   base::cat("at most ", kMaxStacks));
    if (need(config) > kMaxStackDepth) continue;
    const Automaton::State& state = automaton_.state(config.state);
    if (state.final) {
      if (config.frame == kBase) {
        escaped_ = true;
      } else {
        work_.push_back({frames_[config.frame].state, frames_[config.frame].parent});
      }
    }
    for (std::uint32_t i = 0; i < state.n_calls; ++i) {
      const Automaton::Call& call = automaton_.calls(state)[i];
      if (automaton_.state(call.to).tail) {
        work_.push_back({call.start, config.frame});
      } else if (frames_[config.frame].depth < kMaxStackDepth) {
        work_.push_back({call.start, push(call.to, config.frame)});
      }  // deeper: no way that need() would let through
    }
    if (state.n_edges != 0 || state.n_tokens != 0) made_.push_back(config);
  }
  if (made_.size() > kMaxStacks)
    base::reject(automaton_.where(), "too ambiguous: one text can be read in too many ways",
                 base::cat(made_.size()), base::cat("at most ", kMaxStacks));
  std::sort(made_.begin(), made_.end());
  return intern();
}

// The candidate is put behind the others and taken away again when it is known.
Machine::SetId Machine::intern() {
  const auto id = static_cast<SetId>(sets_.size());
  std::uint32_t least = 0;
  for (const Config& config : made_) least = std::max(least, need(config));
  sets_.push_back({static_cast<std::uint32_t>(configs_.size()),
                   static_cast<std::uint32_t>(made_.size()), least, escaped_});
  configs_.insert(configs_.end(), made_.begin(), made_.end());
  const auto [found, added] = ids_.insert(id);
  if (added) {
    next_.resize(next_.size() + n_classes_, kUnknown);
    return id;
  }
  configs_.resize(sets_.back().first);
  sets_.pop_back();
  return *found;
}

Machine::SetId Machine::make_step(SetId set, std::uint8_t byte) {
  work_.clear();
  for (const Config& config : configs(set)) {
    const Automaton::State& state = automaton_.state(config.state);
    const Automaton::ByteEdge* begin = automaton_.edges(state);
    const Automaton::ByteEdge* end = begin + state.n_edges;
    const auto* edge = std::lower_bound(
        begin, end, byte, [](const Automaton::ByteEdge& e, std::uint8_t b) { return e.high < b; });
    if (edge != end && edge->low <= byte) work_.push_back({edge->to, config.frame});
  }
  const SetId to = close();
  next_[set * n_classes_ + automaton_.byte_class(byte)] = to;
  return to;
}

Machine::SetId Machine::step_tokens(SetId set, const std::vector<std::uint8_t>& patterns,
                                    SetId other) {
  work_.clear();
  for (const Config& config : configs(set)) {
    const Automaton::State& state = automaton_.state(config.state);
    for (std::uint32_t i = 0; i < state.n_tokens; ++i) {
      const Automaton::TokenEdge& edge = automaton_.tokens(state)[i];
      if (patterns[edge.pattern] != 0) work_.push_back({edge.to, config.frame});
    }
  }
  const SetId stepped = close();
  if (other == kDead) return stepped;
  made_.assign(configs(stepped).begin(), configs(stepped).end());
  made_.insert(made_.end(), configs(other).begin(), configs(other).end());
  std::sort(made_.begin(), made_.end());
  made_.erase(std::unique(made_.begin(), made_.end()), made_.end());
  escaped_ = escaped(stepped) || escaped(other);
  return intern();
}

std::size_t Machine::used_bytes() const {
  return configs_.size() * sizeof(Config) + sets_.size() * (sizeof(Set) + 32) +
         next_.size() * sizeof(std::uint32_t) + frames_.size() * (sizeof(Frame) + 48);
}

Machine::SetId Machine::forget_but(SetId set) {
  std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> kept;  // state, stack from the top
  for (const Config& config : configs(set)) {
    kept.push_back({config.state, {}});
    for (FrameId frame = config.frame; frame != kBase; frame = frames_[frame].parent)
      kept.back().second.push_back(frames_[frame].state);
  }
  const bool was_escaped = escaped(set);
  clear();
  made_.clear();
  for (const auto& [state, stack] : kept) {
    FrameId frame = kBase;
    for (auto at = stack.rbegin(); at != stack.rend(); ++at) frame = push(*at, frame);
    made_.push_back({state, frame});
  }
  std::sort(made_.begin(), made_.end());
  escaped_ = was_escaped;
  return intern();
}

}  // namespace quern::grammar
