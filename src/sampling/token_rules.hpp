// What a checkpoint or a user says about which token may come next, as changes of the scores of one
// sequence, in the order of the `transformers` library and with its meaning of every number. Not
// here: choosing a token, and where the values come from (generation_plan.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace quern::sampling {

// "Sequence" is all ids so far, the prompt (of an encoder-decoder: what the decoder's input begins
// with) included.
struct TokenRuleOptions {
  std::size_t prompt_length = 0;    // ids of the sequence that were given
  std::size_t max_length = 0;       // of the sequence; for forced_eos
  std::vector<std::int32_t> ends;   // what min_length and min_new_tokens hold back
  double repetition_penalty = 1;    // > 1: tokens of the sequence become less likely
  std::size_t no_repeat_ngram = 0;  // no run of so many tokens comes twice; 0: off
  std::vector<std::vector<std::int32_t>>
      bad_words;  // never completed; a lone end token is no bad word
  std::size_t min_length = 0, min_new_tokens = 0;
  std::optional<std::int32_t> forced_bos;  // the only choice after a sequence of one token
  std::optional<std::int32_t> forced_eos;  // the only choice for the last token before max_length
  std::vector<std::int32_t> suppress, begin_suppress;  // never; not as the first chosen token
  bool renormalize = false;                            // log softmax of what the rules left
  std::size_t allowed = 0;  // ids from here on are never chosen (padding rows); 0: all may be
};

class TokenRules {
 public:
  // Ids at or beyond vocab_size in the options are of no effect.
  TokenRules(TokenRuleOptions options, std::size_t vocab_size);

  // False when apply() leaves every row as it is.
  bool active() const { return active_; }
  // Changes scores [vocab_size] of the token that follows `sequence`; forbidden tokens get
  // -infinity.
  void apply(std::span<const std::int32_t> sequence, std::span<float> scores);

 private:
  void penalize_repetition(std::span<const std::int32_t> sequence, std::span<float> scores);
  void forbid_ngrams(std::span<const std::int32_t> sequence, std::span<float> scores) const;
  void forbid_words(std::span<const std::int32_t> sequence, std::span<float> scores) const;
  void forbid(std::span<const std::int32_t> ids, std::span<float> scores) const;
  void force(std::int32_t id, std::span<float> scores) const;

  TokenRuleOptions options_;
  bool active_;
  std::size_t begin_;  // length of the sequence whose next token begin_suppress is about
  std::vector<std::uint8_t> seen_;  // marks of penalize_repetition, all zero between calls
};

}  // namespace quern::sampling
