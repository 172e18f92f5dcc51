// A conversation as token ids, and what the model's chat format says of its answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chat/answer_marks.hpp"
#include "chat/message.hpp"
#include "chat_options.hpp"
#include "model_options.hpp"

namespace quern::tool {

enum class Thinking { automatic, on, off };  // automatic: what the template does by itself

class ChatRenderer {
 public:
  // Input error for a model without a chat format; it names what can be done.
  ChatRenderer(const LoadedModel& loaded, const ChatOptions& options);

  // Ends where the assistant's answer begins. Text of a message never becomes a control token.
  std::vector<std::int32_t> render(const std::vector<chat::Message>& messages, Thinking thinking) const;
  // An answer to ids that end so begins inside a thought.
  bool opens_thought(const std::vector<std::int32_t>& ids) const;
  const chat::ThoughtMarks& marks() const { return marks_.thoughts; }
  // Whether thoughts can be turned on and off.
  bool knows_thinking() const { return format_.traits().thinking == chat::Thinking::switchable; }
  // That end an answer beside the contract's end tokens.
  const std::vector<std::int32_t>& stop_ids() const { return marks_.stop_ids; }

 private:
  const LoadedModel& loaded_;
  chat::Format format_;
  chat::AnswerMarks marks_;
};

}  // namespace quern::tool
