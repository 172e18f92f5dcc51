#include "chat_options.hpp"

#include "base/error.hpp"
#include "base/strings.hpp"
#include "chat/builtin_templates.hpp"

namespace quern::tool {

void add_chat_options(CLI::App& app, ChatOptions& options) {
  CLI::Option* text = app.add_option("--chat-template", options.chat_template,
                                     base::cat("the chat's template in place of the model's: Jinja text, or one of ",
                                               base::join(chat::builtin_names())));
  app.add_option("--chat-template-file", options.chat_template_file, "a file with the template (- for standard input)")
      ->excludes(text);
  app.add_option("--chat-template-kwargs", options.chat_template_kwargs,
                 "variables of the template as a JSON object: {\"enable_thinking\": false}");
}

bool has_chat_format(const LoadedModel& loaded, const ChatOptions& options) {
  return !options.chat_template.empty() || !options.chat_template_file.empty() ||
         chat::Format::described(loaded.model->contract);
}

chat::Format make_chat_format(const LoadedModel& loaded, const ChatOptions& options, const std::tm& now) {
  chat::FormatOptions format;
  format.chat_template = options.chat_template;
  format.kwargs_json = options.chat_template_kwargs;
  format.now = now;
  if (!options.chat_template_file.empty()) {
    format.template_file = options.chat_template_file;
    format.chat_template = read_input(options.chat_template_file);
    if (format.chat_template.empty()) base::reject(options.chat_template_file, "an empty template");
  }
  return chat::Format(loaded.model->contract, need_tokenizer(loaded), format, std::string(loaded.model->weights.where()));
}

}  // namespace quern::tool
