// The text of an answer as its ids come. Control tokens are no text, but the marks of thoughts stay, whatever they
// are made of: thoughts in channels (gpt-oss) stand between <think> and </think>. Not here: stops, where text goes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chat/answer_marks.hpp"
#include "model_options.hpp"
#include "text/text_stream.hpp"

namespace quern::tool {

// What the text of an answer holds beside the answer.
struct AnswerTextOptions {
  bool special = false;        // control tokens, as they are
  bool hide_thoughts = false;
  std::shared_ptr<const chat::AnswerMarks> marks = nullptr;  // of a chat; none: no thoughts are known
  bool opened = false;         // the prompt ends inside a thought
};

// Marks and opening of the answer to a chat, and the tokens that end it beside the model's own.
void set_marks(AnswerTextOptions& options, const chat::FormatTraits& traits, const LoadedModel& loaded);
void set_prompt(AnswerTextOptions& options, const std::vector<std::int32_t>& prompt, const LoadedModel& loaded);
void end_as_chat(std::vector<std::int32_t>& stop_ids, const chat::AnswerMarks& marks, const LoadedModel& loaded,
                 bool ignore_ends);

class AnswerText {
 public:
  // Without a tokenizer there is no text.
  AnswerText(const LoadedModel& loaded, AnswerTextOptions options);

  std::string push(std::int32_t id);
  std::string finish();
  bool over() const { return thoughts_ && thoughts_->over(); }  // a channel's answer has ended

 private:
  std::string shown(const std::vector<chat::AnswerPiece>& pieces);
  std::string end_thought();

  const LoadedModel& loaded_;
  AnswerTextOptions options_;
  std::optional<text::TextStream> stream_;
  std::optional<chat::ThoughtStream> thoughts_;  // where they are written otherwise than they come
  bool in_thought_ = false, line_open_ = false;
};

// The text of ids, as an answer of a search or the prompt of --echo.
std::string text_of_ids(const LoadedModel& loaded, std::span<const std::int32_t> ids, AnswerTextOptions options);

}  // namespace quern::tool
