// Logits -> next token. Total order everywhere (ties go to the lowest id); non-finite logits are an
// error, never a token.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sampling/constraint.hpp"
#include "sampling/token_rules.hpp"

namespace quern::sampling {

struct SamplerOptions {
  double temperature = 0.8;     // 0: greedy
  std::size_t top_k = 40;       // 0: off
  double top_p = 0.95;          // 1: off
  double min_p = 0.05;          // 0: off
  double repeat_penalty = 1.0;  // 1: off
  std::size_t repeat_last_n = 64;
  std::uint64_t seed = 0;  // the same seed gives the same tokens
};

class Sampler {
 public:
  Sampler(const SamplerOptions& options, std::size_t vocab_size);
  ~Sampler();

  // ids at or beyond `allowed` (padding rows of the embedding) are never returned.
  void set_allowed(std::size_t allowed);
  // Applied to the logits before anything else (token_rules.hpp); none at first.
  void set_rules(TokenRules rules);
  // After the rules only what `constraint` allows is left; it follows by accept() of the tokens
  // chosen here, not of a prompt, and begins anew with start(). Not owned; null for none.
  void set_constraint(Constraint* constraint);
  // A new sequence begins as `ids`.
  void start(std::span<const std::int32_t> ids);
  // Next token from logits [vocab_size]. Throws an input error naming `step` when a logit is not
  // finite, or when rules and constraint leave no token.
  std::int32_t sample(std::span<const float> logits, std::size_t step);
  void accept(std::int32_t id);  // the sequence goes on with it, a token that sample() gave

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::sampling
