#include "chat/format.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "chat/builtin_templates.hpp"
#include "chat/format_probe.hpp"

namespace quern::chat {

namespace {

using jinja::Data;
using jinja::Trust;

// A word is a name, anything with a brace a template.
std::string template_text(const FormatOptions& options) {
  const std::string& given = options.chat_template;
  if (!options.template_file.empty() || given.find('{') != std::string::npos) return given;
  std::string text = builtin_template(given);
  if (text.empty()) {
    const std::vector<std::string_view> names = builtin_names();
    const std::string near = base::nearest(given, names);
    base::usage_error("--chat-template",
                      base::cat("unknown template \"", base::printable(given, 60), "\"",
                                near.empty() ? "" : base::cat(", did you mean \"", near, "\"?"),
                                "; known: ", base::join(names), ", or Jinja text"));
  }
  return text;
}

constexpr std::string_view kContinueTag = "CONTINUE_FINAL_MESSAGE_TAG ";

// Text and marks up to a byte.
base::MarkedText cut(const base::MarkedText& text, std::size_t end) {
  base::MarkedText out{text.text.substr(0, end), {}};
  for (const auto& range : text.untrusted)
    if (range.begin < end) out.untrusted.push_back({range.begin, std::min(range.end, end)});
  return out;
}

}  // namespace

jinja::Template::Variables special_tokens(const contract::Contract& contract,
                                          const text::Tokenizer& tokenizer) {
  jinja::Template::Variables out;
  const auto add = [&](const std::string& name, std::string text) {
    if (!text.empty()) out.emplace_back(name, Data::of(std::move(text), Trust::trusted));
  };
  const auto by_id = [&](const std::string& name, std::optional<std::int32_t> id) {
    if (id) add(name, std::string(tokenizer.token_bytes(*id)));
  };
  by_id("bos_token", contract.tokens.bos);
  if (!contract.tokens.eos.empty()) by_id("eos_token", contract.tokens.eos.front());
  by_id("pad_token", contract.tokens.pad);
  by_id("unk_token", contract.tokens.unk);
  for (const auto& [name, text] : contract.chat.special) add(name, text);
  return out;
}

std::string template_source(const contract::Contract& contract) {
  return !contract.chat.jinja.empty() ? contract.chat.jinja
                                      : builtin_template(contract.chat.builtin);
}

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm out{};
  localtime_r(&now, &out);
  return out;
}

bool Format::described(const contract::Contract& contract) {
  return !contract.chat.jinja.empty() || !contract.chat.builtin.empty() ||
         contract.chat.named.contains("tool_use");
}

Format::Format(const contract::Contract& contract, const text::Tokenizer& tokenizer,
               const FormatOptions& options, const std::string& where)
    : contract_(contract), tokenizer_(tokenizer), variables_(special_tokens(contract, tokenizer)) {
  options_.now = options.now;
  const std::string name =
      !options.template_file.empty() ? options.template_file : base::cat(where, ": chat template");
  if (!options.chat_template.empty()) {
    templates_.emplace_back(template_text(options),
                            options.template_file.empty() ? "--chat-template" : name);
  } else if (described(contract)) {
    const auto tools = contract.chat.named.find("tool_use");
    const std::string text = template_source(contract);
    if (!text.empty()) templates_.emplace_back(text, name);
    if (tools != contract.chat.named.end())
      templates_.emplace_back(tools->second, base::cat(name, " tool_use"));
  }
  if (templates_.empty()) {
    base::reject(where, "the model has no chat template", {},
                 "one of --chat-template and --chat-template-file");
  }
  if (options.kwargs_json.empty()) return;
  const Data kwargs = Data::parse(options.kwargs_json, "--chat-template-kwargs", Trust::untrusted);
  if (kwargs.kind != Data::Kind::object)
    base::usage_error("--chat-template-kwargs", "not a JSON object");
  for (const auto& [key, value] : kwargs.members) set_variable(key.text, value);
}

void Format::set_variable(const std::string& name, Data value) {
  if (name == "messages" || name == "tools" || name == "add_generation_prompt")
    base::usage_error("--chat-template-kwargs",
                      base::cat("\"", name, "\" is not a variable of the user"));
  variables_.emplace_back(name, std::move(value));
  traits_.reset();
}

const jinja::Template& Format::template_for(const RenderRequest& request) const {
  return request.tools_json.empty() ? templates_.front() : templates_.back();
}

base::MarkedText Format::render_data(const std::vector<Data>& messages,
                                     const RenderRequest& request) const {
  jinja::Template::Variables variables = {
      {"tools", request.tools_json.empty()
                    ? Data()
                    : Data::parse(request.tools_json, "tools", Trust::untrusted)},
      {"documents", Data()}};
  variables.insert(variables.end(), variables_.begin(), variables_.end());
  variables.insert(variables.end(), request.variables.begin(), request.variables.end());
  variables.emplace_back("messages", Data::of(messages));
  variables.emplace_back("add_generation_prompt",
                         Data::of(request.add_generation_prompt && !request.continue_final));
  return template_for(request).render(variables, options_);
}

base::MarkedText Format::render(const std::vector<Message>& messages,
                                const RenderRequest& request) const {
  std::vector<Data> data;
  for (const Message& message : messages)
    data.push_back(to_data(message, base::cat("messages[", data.size(), "]")));
  return request.continue_final ? continued(std::move(data), request)
                                : render_data(data, request);
}

// As transformers does it: the last message gets a tag at its end, and the text is cut at the tag.
base::MarkedText Format::continued(std::vector<Data> messages, const RenderRequest& request) const {
  Data* content = nullptr;
  if (!messages.empty())
    for (auto& [key, value] : messages.back().members)
      if (key.text == "content") content = &value;
  if (content == nullptr || content->kind != Data::Kind::text)
    base::reject("messages", "there is no final message with a text to continue");
  content->text.text += kContinueTag;
  base::MarkedText text = render_data(messages, request);
  const std::string_view word = kContinueTag.substr(0, kContinueTag.size() - 1);
  std::size_t at = text.text.rfind(word);
  if (at == std::string::npos)
    base::reject(template_for(request).name(),
                 "the final message does not appear in the chat, so it cannot be continued");
  if (text.text.compare(at, kContinueTag.size(), kContinueTag) !=
      0)  // the template trims: so do we
    while (at > 0 &&
           (text.text[at - 1] == ' ' || text.text[at - 1] == '\n' || text.text[at - 1] == '\t'))
      --at;
  return cut(text, at);
}

std::vector<std::int32_t> Format::ids(const std::vector<Message>& messages,
                                      const RenderRequest& request) const {
  return tokenizer_.encode(render(messages, request));
}

const FormatTraits& Format::traits() const {
  if (!traits_) traits_ = FormatProbe(*this).run();
  return *traits_;
}

}  // namespace quern::chat
