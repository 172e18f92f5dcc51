#include "chat_renderer.hpp"

#include "base/error.hpp"

namespace quern::tool {

namespace {

chat::Format format_of(const LoadedModel& loaded, const ChatOptions& options) {
  if (!has_chat_format(loaded, options))
    base::reject(loaded.model->weights.where(),
                 "the model has no chat template, so it may be a base model: complete plain text with "
                 "quern run -no-cnv, or name its format with --chat-template (quern chat --help lists them)");
  return make_chat_format(loaded, options);
}

}  // namespace

ChatRenderer::ChatRenderer(const LoadedModel& loaded, const ChatOptions& options)
    : loaded_(loaded), format_(format_of(loaded, options)), marks_(chat::answer_marks(format_.traits(), *loaded.tokenizer)) {}

std::vector<std::int32_t> ChatRenderer::render(const std::vector<chat::Message>& messages, Thinking thinking) const {
  const chat::FormatTraits& traits = format_.traits();
  chat::RenderRequest request;
  if (thinking != Thinking::automatic && !traits.thinking_switch.empty())
    request.variables.emplace_back(traits.thinking_switch, jinja::Data::of(thinking == Thinking::on));
  return format_.ids(messages, request);
}

bool ChatRenderer::opens_thought(const std::vector<std::int32_t>& ids) const {
  return marks_.opened_by(ids, *loaded_.tokenizer);
}

}  // namespace quern::tool
