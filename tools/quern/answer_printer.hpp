// The answer of `quern run` on standard output: text or ids as they come, or one JSON object at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/session.hpp"
#include "run_options.hpp"
#include "text/text_stream.hpp"

namespace quern::tool {

class AnswerPrinter {
 public:
  AnswerPrinter(const LoadedModel& loaded, const RunOptions& options);

  // A token of the one answer that is being generated; false when the user wants to stop.
  bool token(std::int32_t id);
  // The answers of a search, best first, without their end tokens; one line each.
  void answers(const std::vector<engine::Hypothesis>& hypotheses, const std::vector<std::int32_t>& ends);

  struct Summary {
    engine::FinishReason reason;
    std::size_t prompt_tokens;
    std::string search;       // how it was generated, for people
    std::string timings_json;
  };
  void finish(const Summary& summary);

 private:
  struct Answer {
    std::string text;
    std::vector<std::int32_t> ids;
    float score;
  };

  void show(const std::string& piece);
  Answer decoded(const engine::Hypothesis& hypothesis, const std::vector<std::int32_t>& ends) const;

  const LoadedModel& loaded_;
  const RunOptions& options_;
  std::optional<text::TextStream> stream_;  // none without a tokenizer
  std::string text_;
  std::vector<std::int32_t> ids_;
  std::vector<Answer> answers_;  // of a search
};

}  // namespace quern::tool
