// Options about the chat format that every command with a chat takes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "chat/format.hpp"
#include "model_options.hpp"

namespace quern::tool {

struct ChatOptions {
  std::string chat_template;       // --chat-template
  std::string chat_template_file;  // --chat-template-file
  std::string chat_template_kwargs;
};
void add_chat_options(CLI::App& app, ChatOptions& options);

// Whether there is a template: of the options or of the model.
bool has_chat_format(const LoadedModel& loaded, const ChatOptions& options);

// Input errors name the template and its line. now: what templates take for the current time.
chat::Format make_chat_format(const LoadedModel& loaded, const ChatOptions& options,
                              const std::tm& now = chat::local_time());

}  // namespace quern::tool
