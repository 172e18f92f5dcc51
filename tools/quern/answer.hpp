// One answer of `quern run` while it is generated: its text with stops taken out, its ids, the
// scores of its tokens. Not here: what is written where (answer_printer.hpp).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "answer_text.hpp"
#include "engine/session.hpp"
#include "run_options.hpp"
#include "text/stop_strings.hpp"

namespace quern::tool {

// What an answer looks like and where it ends, beside its end tokens.
struct AnswerOptions {
  std::vector<std::string> stops;  // texts that end it
  AnswerTextOptions text;
  bool scores = false;             // of each token
  std::size_t top_scores = 0;      // and of the best ones beside it
};
AnswerOptions answer_options(const RunOptions& options);

// log softmax of the raw logits: before bias, rules, penalties, samplers.
struct TokenScore {
  std::int32_t id;
  float logprob;
  std::vector<std::pair<std::int32_t, float>> top;  // best first
};
TokenScore token_score(std::span<const float> logits, std::int32_t id, std::size_t n_top);

// What ended an answer, if it was an end token or a stop.
struct StopFound {
  std::optional<std::int32_t> id;
  std::string text;
};

struct Answer {
  std::string text;
  std::vector<std::int32_t> ids;  // all that were generated, but for a stop id
  std::vector<TokenScore> scores;
  engine::FinishReason reason = engine::FinishReason::interrupted;
  std::optional<StopFound> stop;
  float score = 0;  // of a search
};

class AnswerBuilder {
 public:
  // show gets the text as soon as it is sure. Without a tokenizer an answer has ids only.
  AnswerBuilder(const LoadedModel& loaded, AnswerOptions options, std::vector<std::int32_t> stop_ids,
                std::function<void(const std::string&)> show);

  // Takes one token with the logits it was chosen from; false when the answer ends with it.
  bool token(std::int32_t id, std::span<const float> logits);
  bool took_last() const { return took_last_; }  // it is one of the answer's ids, no stop
  // The answer is over: `reason` as the session has it.
  Answer finish(engine::FinishReason reason);

 private:
  void add_text(const std::string& piece);

  const LoadedModel& loaded_;
  AnswerOptions options_;
  std::vector<std::int32_t> stop_ids_;
  std::function<void(const std::string&)> show_;
  AnswerText text_;
  text::StopStrings stops_;
  Answer answer_;
  bool took_last_ = false;
};

}  // namespace quern::tool
