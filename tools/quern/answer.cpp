#include "answer.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "sampling/scores.hpp"

namespace quern::tool {

TokenScore token_score(std::span<const float> logits, std::int32_t id, std::size_t n_top) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  const double shift = largest + std::log(sum);
  const auto logprob = [&](std::size_t i) { return static_cast<float>(logits[i] - shift); };
  TokenScore score{id, logprob(static_cast<std::size_t>(id)), {}};
  for (const std::size_t i : sampling::best_indexes(logits, n_top))
    score.top.emplace_back(static_cast<std::int32_t>(i), logprob(i));
  return score;
}

AnswerOptions answer_options(const RunOptions& options) {
  return {stop_texts(options.stops), {options.special, options.hide_thinking}, options.wants_scores(), options.top_logprobs};
}

AnswerBuilder::AnswerBuilder(const LoadedModel& loaded, AnswerOptions options, std::vector<std::int32_t> stop_ids,
                             std::function<void(const std::string&)> show)
    : loaded_(loaded),
      options_(std::move(options)),
      stop_ids_(std::move(stop_ids)),
      show_(std::move(show)),
      text_(loaded, options_.text),
      stops_(options_.stops) {
  if (!stops_.stops().empty()) need_tokenizer(loaded);
}

void AnswerBuilder::add_text(const std::string& piece) {
  answer_.text += piece;
  show_(piece);
}

bool AnswerBuilder::token(std::int32_t id, std::span<const float> logits) {
  took_last_ = std::find(stop_ids_.begin(), stop_ids_.end(), id) == stop_ids_.end();
  if (took_last_ && !stops_.found()) add_text(stops_.push(text_.push(id)));
  took_last_ = took_last_ && !text_.over();
  if (!took_last_) {
    answer_.stop = StopFound{id, ""};
    if (loaded_.tokenizer) answer_.stop->text = text::utf8_lossy(loaded_.tokenizer->token_bytes(id));
    return false;
  }
  answer_.ids.push_back(id);
  if (options_.scores) answer_.scores.push_back(token_score(logits, id, options_.top_scores));
  return !stops_.found();
}

Answer AnswerBuilder::finish(engine::FinishReason reason) {
  if (!stops_.found()) add_text(stops_.push(text_.finish()));
  if (stops_.found()) answer_.stop = StopFound{std::nullopt, stops_.stops()[*stops_.found()]};
  else add_text(stops_.finish());
  answer_.reason = answer_.stop ? engine::FinishReason::stop : reason;
  return std::move(answer_);
}

}  // namespace quern::tool
