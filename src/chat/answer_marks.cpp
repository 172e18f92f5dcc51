#include "chat/answer_marks.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/strings.hpp"

namespace quern::chat {

namespace {

constexpr std::size_t kPromptTail = 32;  // tokens in which a generation prompt opens or closes a thought

// Thoughts in a channel of their own: marks of several control tokens, which rendering small chats does not find.
constexpr std::string_view kChannel = "<|channel|>", kMessage = "<|message|>", kEnd = "<|end|>", kStart = "<|start|>";

ThoughtMarks thought_marks(const FormatTraits& traits, const text::Tokenizer& tokenizer) {
  if (!traits.think_begin.empty()) return {traits.think_begin, traits.think_end};
  const bool channels =
      tokenizer.id_of(kChannel) >= 0 && tokenizer.id_of(kMessage) >= 0 && tokenizer.id_of(kStart) >= 0;
  // A model may think though its template does not say so.
  if (!channels) return {"<think>", "</think>"};
  return {base::cat(kChannel, "analysis", kMessage),
          base::cat(kEnd, kStart, "assistant", kChannel, "final", kMessage), true};
}

}  // namespace

bool AnswerMarks::keeps_on(const text::Tokenizer& tokenizer, std::int32_t id) const {
  const std::string_view spelling = tokenizer.token_bytes(id);
  return !spelling.empty() && thoughts.close.find(spelling) != std::string::npos;
}

bool AnswerMarks::opened_by(const std::vector<std::int32_t>& prompt, const text::Tokenizer& tokenizer) const {
  const std::size_t begin = prompt.size() - std::min(prompt.size(), kPromptTail);
  const std::string tail = tokenizer.decode({prompt.begin() + static_cast<std::ptrdiff_t>(begin), prompt.end()});
  const std::size_t open = tail.rfind(thoughts.open);
  if (open == std::string::npos || tail.find(thoughts.close, open) != std::string::npos) return false;
  return tail.find_first_not_of(" \n", open + thoughts.open.size()) == std::string::npos;
}

AnswerMarks answer_marks(const FormatTraits& traits, const text::Tokenizer& tokenizer) {
  AnswerMarks marks{thought_marks(traits, tokenizer), {}};
  for (const std::int32_t id : traits.stop_ids)
    if (!marks.keeps_on(tokenizer, id)) marks.stop_ids.push_back(id);
  return marks;
}

}  // namespace quern::chat
