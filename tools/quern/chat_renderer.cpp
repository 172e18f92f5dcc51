#include "chat_renderer.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kPromptTail = 32;  // tokens in which a generation prompt opens or closes a thought

chat::Format format_of(const LoadedModel& loaded, const ChatOptions& options) {
  if (!has_chat_format(loaded, options))
    base::reject(loaded.model->weights.where(),
                 "the model has no chat template, so it may be a base model: complete plain text with "
                 "quern run -no-cnv, or name its format with --chat-template (quern chat --help lists them)");
  return make_chat_format(loaded, options);
}

// Thoughts in a channel of their own: marks of several control tokens, which rendering small chats does not find.
constexpr std::string_view kChannel = "<|channel|>", kMessage = "<|message|>", kEnd = "<|end|>", kStart = "<|start|>";

chat::ThoughtMarks marks_of(const chat::FormatTraits& traits, const text::Tokenizer& tokenizer) {
  if (!traits.think_begin.empty()) return {traits.think_begin, traits.think_end};
  const bool channels =
      tokenizer.id_of(kChannel) >= 0 && tokenizer.id_of(kMessage) >= 0 && tokenizer.id_of(kStart) >= 0;
  // A model may think though its template does not say so.
  if (!channels) return {"<think>", "</think>"};
  const std::string thought = base::cat(kChannel, "analysis", kMessage), answer = base::cat(kChannel, "final", kMessage);
  const std::string next = base::cat(kEnd, kStart, "assistant");
  return {thought, next + answer, answer, next + thought};
}

}  // namespace

ChatRenderer::ChatRenderer(const LoadedModel& loaded, const ChatOptions& options)
    : loaded_(loaded), format_(format_of(loaded, options)) {
  const chat::FormatTraits& traits = format_.traits();
  marks_ = marks_of(traits, *loaded.tokenizer);
  // A token within the closing mark ends the thoughts, not the answer.
  for (const std::int32_t id : traits.stop_ids) {
    const std::string_view spelling = loaded.tokenizer->token_bytes(id);
    if (spelling.empty() || marks_.close.find(spelling) == std::string::npos) stop_ids_.push_back(id);
  }
}

std::vector<std::int32_t> ChatRenderer::render(const std::vector<chat::Message>& messages, Thinking thinking) const {
  const chat::FormatTraits& traits = format_.traits();
  chat::RenderRequest request;
  if (thinking != Thinking::automatic && !traits.thinking_switch.empty())
    request.variables.emplace_back(traits.thinking_switch, jinja::Data::of(thinking == Thinking::on));
  return format_.ids(messages, request);
}

bool ChatRenderer::opens_thought(const std::vector<std::int32_t>& ids) const {
  const std::size_t begin = ids.size() - std::min(ids.size(), kPromptTail);
  const std::string tail = loaded_.tokenizer->decode({ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.end()});
  const std::size_t open = tail.rfind(marks_.open);
  if (open == std::string::npos || tail.find(marks_.close, open) != std::string::npos) return false;
  return tail.find_first_not_of(" \n", open + marks_.open.size()) == std::string::npos;
}

}  // namespace quern::tool
