// What a model's answers look like beside their text: the marks of thoughts and the tokens that end an answer.
// From the format's traits and the vocabulary. Not here: parting an answer by them (thought_stream.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "chat/format.hpp"
#include "chat/thought_stream.hpp"

namespace quern::chat {

struct AnswerMarks {
  ThoughtMarks thoughts;
  std::vector<std::int32_t> stop_ids;  // the model's ends and the end of a turn, but no part of a mark

  // Whether this token ends the thoughts, not the answer, whatever the model's list of ends says.
  bool keeps_on(const text::Tokenizer& tokenizer, std::int32_t id) const;
  // Whether an answer to a prompt that ends so begins inside a thought.
  bool opened_by(const std::vector<std::int32_t>& prompt, const text::Tokenizer& tokenizer) const;
};

AnswerMarks answer_marks(const FormatTraits& traits, const text::Tokenizer& tokenizer);

}  // namespace quern::chat
