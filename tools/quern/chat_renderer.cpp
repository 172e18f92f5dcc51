#include "chat_renderer.hpp"

#include "base/error.hpp"
#include "base/strings.hpp"
#include "chat_prompt.hpp"

namespace quern::tool {

ChatRenderer::ChatRenderer(const LoadedModel& loaded) : loaded_(loaded), marks_{"<think>", "</think>", ""} {
  need_tokenizer(loaded);
  if (!has_chat_format(loaded.model->contract))
    base::reject(loaded.model->weights.where(),
                 "the model has no chat format; complete plain text with quern run -no-cnv");
}

std::vector<std::int32_t> ChatRenderer::render(const std::vector<chat::Message>& messages, Thinking) const {
  std::vector<std::int32_t> ids;
  const text::Tokenizer& tokenizer = *loaded_.tokenizer;
  const contract::Contract& contract = loaded_.model->contract;
  if (messages.empty() || messages.front().role != "system")
    if (!contract.chat.default_system.empty())
      append_chat_message(ids, tokenizer, "system", contract.chat.default_system);
  for (const chat::Message& message : messages) append_chat_message(ids, tokenizer, message.role, message.content);
  append_answer_start(ids, tokenizer);
  return ids;
}

bool ChatRenderer::opens_thought(const std::vector<std::int32_t>&) const {
  return false;
}

}  // namespace quern::tool
