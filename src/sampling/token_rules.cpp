#include "sampling/token_rules.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "sampling/scores.hpp"

namespace quern::sampling {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

bool contains(const std::vector<std::int32_t>& ids, std::int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

bool ends_with(std::span<const std::int32_t> sequence, std::span<const std::int32_t> tail) {
  return tail.size() <= sequence.size() &&
         std::equal(tail.begin(), tail.end(),
                    sequence.end() - static_cast<std::ptrdiff_t>(tail.size()));
}

bool has_effect(const TokenRuleOptions& o, std::size_t vocab_size) {
  return o.repetition_penalty != 1 || o.no_repeat_ngram > 0 || !o.bad_words.empty() ||
         (!o.ends.empty() && (o.min_length > 0 || o.min_new_tokens > 0)) || o.forced_bos ||
         o.forced_eos || !o.suppress.empty() || !o.begin_suppress.empty() || o.renormalize ||
         (o.allowed != 0 && o.allowed < vocab_size);
}

}  // namespace

TokenRules::TokenRules(TokenRuleOptions options, std::size_t vocab_size)
    : options_(std::move(options)), seen_(vocab_size, 0) {
  std::erase_if(options_.bad_words, [&](const std::vector<std::int32_t>& word) {
    return word.empty() || (word.size() == 1 && contains(options_.ends, word.front()));
  });
  // A forced first token moves the beginning behind itself.
  const bool shifted = options_.prompt_length <= 1 && options_.forced_bos.has_value();
  begin_ = options_.prompt_length + (shifted ? 1 : 0);
  active_ = has_effect(options_, vocab_size);
}

void TokenRules::penalize_repetition(std::span<const std::int32_t> sequence,
                                     std::span<float> scores) {
  const auto penalty = static_cast<float>(options_.repetition_penalty);
  for (const std::int32_t id : sequence) {
    const auto i = static_cast<std::size_t>(id);
    if (i >= scores.size() || seen_[i] != 0) continue;
    seen_[i] = 1;
    scores[i] = scores[i] < 0 ? scores[i] * penalty : scores[i] / penalty;
  }
  for (const std::int32_t id : sequence)
    if (static_cast<std::size_t>(id) < scores.size()) seen_[static_cast<std::size_t>(id)] = 0;
}

// Every earlier place where the last n - 1 tokens stand forbids the token that followed them.
void TokenRules::forbid_ngrams(std::span<const std::int32_t> sequence,
                               std::span<float> scores) const {
  const std::size_t n = options_.no_repeat_ngram;
  if (sequence.size() < n) return;
  const std::span<const std::int32_t> tail = sequence.last(n - 1);
  for (std::size_t i = 0; i + n <= sequence.size(); ++i)
    if (std::equal(tail.begin(), tail.end(), sequence.begin() + static_cast<std::ptrdiff_t>(i)))
      forbid(sequence.subspan(i + n - 1, 1), scores);
}

void TokenRules::forbid_words(std::span<const std::int32_t> sequence,
                              std::span<float> scores) const {
  for (const std::vector<std::int32_t>& word : options_.bad_words) {
    const std::span<const std::int32_t> ids(word);
    if (ends_with(sequence, ids.first(ids.size() - 1))) forbid(ids.last(1), scores);
  }
}

void TokenRules::forbid(std::span<const std::int32_t> ids, std::span<float> scores) const {
  for (const std::int32_t id : ids)
    if (static_cast<std::size_t>(id) < scores.size()) scores[static_cast<std::size_t>(id)] = kNever;
}

void TokenRules::force(std::int32_t id, std::span<float> scores) const {
  if (static_cast<std::size_t>(id) >= scores.size()) return;
  std::fill(scores.begin(), scores.end(), kNever);
  scores[static_cast<std::size_t>(id)] = 0;
}

void TokenRules::apply(std::span<const std::int32_t> sequence, std::span<float> scores) {
  QUERN_ASSERT(scores.size() == seen_.size());
  if (!active_) return;
  const TokenRuleOptions& o = options_;
  const std::size_t length = sequence.size();
  if (o.allowed != 0 && o.allowed < scores.size())
    std::fill(scores.begin() + static_cast<std::ptrdiff_t>(o.allowed), scores.end(), kNever);
  if (o.repetition_penalty != 1) penalize_repetition(sequence, scores);
  if (o.no_repeat_ngram > 0) forbid_ngrams(sequence, scores);
  forbid_words(sequence, scores);
  if (length < o.min_length || length < o.prompt_length + o.min_new_tokens) forbid(o.ends, scores);
  if (o.forced_bos && length == 1) force(*o.forced_bos, scores);
  if (o.forced_eos && length + 1 == o.max_length) force(*o.forced_eos, scores);
  forbid(o.suppress, scores);
  if (length == begin_) forbid(o.begin_suppress, scores);
  if (o.renormalize) log_softmax(scores);
}

}  // namespace quern::sampling
