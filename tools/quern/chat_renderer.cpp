#include "chat_renderer.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kPromptTail = 32;  // tokens in which a generation prompt opens or closes a thought

chat::Format format_of(const LoadedModel& loaded, const ChatOptions& options) {
  if (!has_chat_format(loaded, options))
    base::reject(loaded.model->weights.where(),
                 "the model has no chat template; give one with --chat-template, or complete plain text with "
                 "quern run -no-cnv");
  return make_chat_format(loaded, options);
}

}  // namespace

ChatRenderer::ChatRenderer(const LoadedModel& loaded, const ChatOptions& options)
    : loaded_(loaded), format_(format_of(loaded, options)) {
  const chat::FormatTraits& traits = format_.traits();
  marks_ = {"<think>", "</think>", ""};  // a model may think though its template does not say so
  if (!traits.think_begin.empty()) marks_ = {traits.think_begin, traits.think_end, ""};
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
