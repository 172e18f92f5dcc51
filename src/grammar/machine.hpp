// An automaton at work: all ways to read a text so far, as one set of stacks. Sets and their steps
// are remembered, so a byte that was seen before in the same place costs one table look-up.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "grammar/automaton.hpp"

namespace quern::grammar {

class Machine {
 public:
  using SetId = std::uint32_t;
  using FrameId = std::uint32_t;
  static constexpr SetId kDead = 0;     // no way to read the text
  static constexpr FrameId kBase = 0;   // nothing below

  // One way: a state with edges of its own, and the stack of states to return to.
  struct Config {
    std::uint32_t state;
    FrameId frame;
    auto operator<=>(const Config&) const = default;
  };

  explicit Machine(const Automaton& automaton);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  SetId start();                                  // at the start of a text
  SetId alone(Config config);                     // exactly this, calls of its state not followed
  SetId below(FrameId frame);                     // where the rule on top of `frame` has ended
  SetId step(SetId set, std::uint8_t byte) {
    const std::uint32_t known = next_[set * n_classes_ + automaton_.byte_class(byte)];
    return known != kUnknown ? known : make_step(set, byte);
  }
  // Token edges whose pattern is marked, joined with the ways of `other`.
  SetId step_tokens(SetId set, const std::vector<std::uint8_t>& patterns, SetId other);

  std::span<const Config> configs(SetId set) const {
    return {configs_.data() + sets_[set].first, sets_[set].count};
  }
  // The bottom of the stack was left: the text may end here, or what is below goes on.
  bool escaped(SetId set) const { return sets_[set].escaped; }
  std::uint32_t depth(FrameId frame) const { return frames_[frame].depth; }
  FrameId parent(FrameId frame) const { return frames_[frame].parent; }
  std::uint32_t return_state(FrameId frame) const { return frames_[frame].state; }
  // Depth of the stack that the ways of a set need at least, to come to their ends.
  std::uint32_t need(SetId set) const { return sets_[set].need; }

  std::size_t used_bytes() const;
  // Forgets everything but `set`, which gets a new number.
  SetId forget_but(SetId set);

 private:
  static constexpr std::uint32_t kUnknown = 0xFFFFFFFF;
  struct Frame {
    std::uint32_t state;  // to go on at
    FrameId parent;
    std::uint32_t depth;
    std::uint32_t need;   // depth that some state of the stack needs at least
    SetId below;
  };
  struct Set {
    std::uint32_t first, count, need;
    bool escaped;
  };
  struct SetHash {
    const Machine* machine;
    std::size_t operator()(SetId id) const;
  };
  struct SetEqual {
    const Machine* machine;
    bool operator()(SetId a, SetId b) const;
  };

  SetId make_step(SetId set, std::uint8_t byte);
  SetId close();   // of work_
  SetId intern();  // of made_ and escaped_
  FrameId push(std::uint32_t state, FrameId parent);
  std::uint32_t need(const Config& config) const;
  void clear();

  const Automaton& automaton_;
  std::size_t n_classes_;
  std::vector<Config> configs_;
  std::vector<Set> sets_;
  std::vector<std::uint32_t> next_;  // [sets, classes]
  std::unordered_set<SetId, SetHash, SetEqual> ids_;
  std::vector<Frame> frames_;
  std::unordered_map<std::uint64_t, FrameId> frame_ids_;
  std::vector<Config> work_, made_;
  std::unordered_set<std::uint64_t> visited_;
  bool escaped_ = false;
};

}  // namespace quern::grammar
