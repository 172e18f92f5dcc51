// Logits -> next token: bias, rules, bans and constraint first, then the chain of samplers in the
// order of the options, then the choice. Total order everywhere (ties go to the lowest id);
// non-finite logits are an error, never a token.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sampling/banned_texts.hpp"
#include "sampling/chooser.hpp"
#include "sampling/constraint.hpp"
#include "sampling/options.hpp"
#include "sampling/token_rules.hpp"

namespace quern::sampling {

// What a sampler remembers beside the sequence: with it, and the same options, another one goes on
// with the same tokens.
struct SamplerState {
  std::uint64_t n_drawn = 0;  // random numbers
  ChooserState chooser;
};

class Sampler {
 public:
  // Usage errors for options without a meaning.
  Sampler(const SamplerOptions& options, std::size_t vocab_size);
  ~Sampler();

  // ids at or beyond `allowed` (padding rows of the embedding) are never returned.
  void set_allowed(std::size_t allowed);
  // Applied to the logits before the samplers (token_rules.hpp); none at first.
  void set_rules(TokenRules rules);
  // Texts that the answer never comes to hold; none at first.
  void set_banned(BannedTexts banned);
  // After the rules only what `constraint` allows is left; it follows by accept() of the tokens
  // chosen here, not of a prompt, and begins anew with start(). Not owned; null for none.
  void set_constraint(Constraint* constraint);

  // A new sequence begins as `ids`. Random numbers and what mirostat and adaptive-p remember go on:
  // a new Sampler begins with these anew.
  void start(std::span<const std::int32_t> ids);
  // Next token from logits [vocab_size]. Throws an input error naming `step` when a logit is not
  // finite, or when rules, bans and constraint leave no token.
  std::int32_t sample(std::span<const float> logits, std::size_t step);
  void accept(std::int32_t id);  // the sequence goes on with it, a token that sample() gave

  // True when the same logits always give the same token, whatever the seed.
  bool greedy() const;
  SamplerState state() const;
  void restore(const SamplerState& state);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::sampling
