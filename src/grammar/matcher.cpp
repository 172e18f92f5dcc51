#include "grammar/matcher.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "grammar/limits.hpp"
#include "grammar/machine.hpp"
#include "grammar/mask_cache.hpp"

namespace quern::grammar {

struct Matcher::State {
  State(const Automaton& automaton_, const Vocabulary& vocabulary_)
      : automaton(automaton_),
        vocabulary(vocabulary_),
        machine(automaton_),
        masks(automaton_, vocabulary_, machine),
        words((vocabulary_.size() + 63) / 64, 0) {
    resolve_tokens();
  }

  const Automaton& automaton;
  const Vocabulary& vocabulary;
  Machine machine;
  MaskCache masks;
  Words words;
  std::vector<std::int32_t> pattern_ids;
  Machine::SetId set = Machine::kDead;
  bool first = true, ended = false;
  std::string tail;  // the end of the answer, for messages

  void resolve_tokens();
  void add_config(const Machine::Config& config);
  void add_tokens(const Automaton::State& state);
  void check_any() const;
};

void Matcher::State::resolve_tokens() {
  for (const TokenPattern& pattern : automaton.token_patterns()) {
    const std::int32_t id = pattern.id >= 0 ? pattern.id : vocabulary.id_of(pattern.spelling);
    if (id < 0 || static_cast<std::size_t>(id) >= vocabulary.size())
      base::reject(automaton.where(),
                   pattern.id >= 0 ? base::cat("token <[", pattern.id, "]> is not in the vocabulary")
                                   : base::cat(base::printable(pattern.spelling, 60),
                                               " is not one token of the vocabulary"));
    if (!pattern.negated && vocabulary.is_end(id))
      base::reject(automaton.where(), base::cat("token ", id, " ends an answer, it cannot be part of one"));
    pattern_ids.push_back(id);
  }
}

// What one way to read the answer allows.
void Matcher::State::add_config(const Machine::Config& config) {
  const Automaton::State& state = automaton.state(config.state);
  if (state.n_tokens != 0) add_tokens(state);
  if (state.n_edges == 0) return;
  if (first && &vocabulary.first_trie() != &vocabulary.trie()) {
    masks.add_all(vocabulary.first_trie(), machine.alone(config), words);
    return;
  }
  const StateMask& mask = masks.of(config.state);
  if (machine.depth(config.frame) + mask.need > kMaxStackDepth) {  // the limit may cut some off
    masks.add_all(vocabulary.trie(), machine.alone(config), words);
    return;
  }
  for (std::size_t i = 0; i < mask.words.size(); ++i) words[i] |= mask.words[i];
  for (const std::int32_t id : mask.ids) set_bit(words, id);
  if (config.frame == Machine::kBase || mask.leaves.empty()) return;
  const Machine::SetId below = machine.below(config.frame);
  for (const std::uint32_t node : mask.leaves)
    masks.add_subtree(vocabulary.trie(), node, below, words);
}

void Matcher::State::add_tokens(const Automaton::State& state) {
  for (std::uint32_t i = 0; i < state.n_tokens; ++i) {
    const std::uint32_t pattern = automaton.tokens(state)[i].pattern;
    const std::int32_t id = pattern_ids[pattern];
    if (!automaton.token_patterns()[pattern].negated) {
      set_bit(words, id);
      continue;
    }
    for (std::size_t other = 0; other < vocabulary.size(); ++other) {
      const auto candidate = static_cast<std::int32_t>(other);
      if (candidate != id && !vocabulary.is_end(candidate)) set_bit(words, candidate);
    }
  }
}

void Matcher::State::check_any() const {
  if (std::any_of(words.begin(), words.end(), [](std::uint64_t word) { return word != 0; })) return;
  base::reject(automaton.where(), "no token of the vocabulary continues the answer",
               base::cat("answer so far: ...", base::printable(tail, 120)));
}

Matcher::Matcher(const Automaton& automaton, const Vocabulary& vocabulary)
    : state_(std::make_unique<State>(automaton, vocabulary)) {
  restart();
}

Matcher::~Matcher() = default;

std::span<const std::uint64_t> Matcher::allowed() {
  State& s = *state_;
  s.masks.trim();
  if (s.machine.used_bytes() > kMaxMachineBytes) {
    s.set = s.machine.forget_but(s.set);
    s.masks.forget_sets();
  }
  std::fill(s.words.begin(), s.words.end(), 0);
  if (!s.ended) {
    // Copied, for the machine's tables move while it works.
    const auto view = s.machine.configs(s.set);
    const std::vector<Machine::Config> configs(view.begin(), view.end());
    for (const Machine::Config& config : configs) s.add_config(config);
  }
  if (may_end())
    for (const std::int32_t id : s.vocabulary.ends()) set_bit(s.words, id);
  s.check_any();
  return s.words;
}

void Matcher::accept(std::int32_t id) {
  State& s = *state_;
  if (id < 0 || static_cast<std::size_t>(id) >= s.vocabulary.size())
    base::reject(s.automaton.where(), base::cat("token ", id, " is not in the vocabulary"));
  std::vector<std::uint8_t> patterns;
  for (std::size_t i = 0; i < s.pattern_ids.size(); ++i) {
    const bool negated = s.automaton.token_patterns()[i].negated;
    patterns.push_back((s.pattern_ids[i] == id) != negated && !(negated && s.vocabulary.is_end(id)) ? 1 : 0);
  }
  const std::string& text = s.first ? s.vocabulary.first_text(id) : s.vocabulary.text(id);
  Machine::SetId next = text.empty() || s.vocabulary.is_end(id) ? Machine::kDead : s.set;
  for (const char c : text) {
    if (next == Machine::kDead) break;
    next = s.machine.step(next, static_cast<std::uint8_t>(c));
  }
  if (!patterns.empty()) next = s.machine.step_tokens(s.set, patterns, next);
  if (next == Machine::kDead) {
    if (!may_end() || !s.vocabulary.is_end(id))
      base::reject(s.automaton.where(), base::cat("token ", id, " does not continue the answer"));
    s.ended = true;
    return;
  }
  s.set = next;
  s.first = false;
  s.tail += text;
  if (s.tail.size() > 400) s.tail.erase(0, s.tail.size() - 60);
}

void Matcher::restart() {
  State& s = *state_;
  s.set = s.machine.start();
  s.first = true;
  s.ended = false;
  s.tail.clear();
}

bool Matcher::may_end() const { return state_->ended || state_->machine.escaped(state_->set); }

bool Matcher::finished() const {
  return state_->ended || (may_end() && state_->machine.configs(state_->set).empty());
}

TextMatch match_text(const Automaton& automaton, std::string_view text) {
  Machine machine(automaton);
  Machine::SetId set = machine.start();
  TextMatch match;
  for (const char c : text) {
    if (machine.used_bytes() > kMaxMachineBytes) set = machine.forget_but(set);
    const Machine::SetId next = machine.step(set, static_cast<std::uint8_t>(c));
    if (next == Machine::kDead) return match;
    set = next;
    ++match.bytes;
  }
  match.complete = machine.escaped(set);
  return match;
}

}  // namespace quern::grammar
