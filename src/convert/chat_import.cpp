// Where a checkpoint keeps its chat templates, and the special tokens that they print.
#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_parts.hpp"

namespace quern::convert {

using base::cat;
using base::Json;

namespace {

constexpr std::string_view kConfig = "tokenizer_config.json", kMap = "special_tokens_map.json";

using Named = std::map<std::string, std::string>;

// "chat_template": a text, or a list of {name, template}. One named "default", else the first, is
// the template; the others keep their names.
std::string template_of(const Json& config, std::string_view file, Named& named) {
  const Json* value = member(config, "chat_template");
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  if (!value->is_array())
    base::reject(cat(file, ": chat_template"), "wrong kind of value", value->type_name());
  std::string first, first_name;
  for (const Json& entry : *value) {
    const std::string name = text_member(entry, "name", cat(file, ": chat_template"));
    const std::string text = text_member(entry, "template", cat(file, ": chat_template"));
    if (first_name.empty()) {
      first_name = name;
      first = text;
    }
    named[name] = text;
  }
  const auto chosen = named.find("default");
  if (chosen != named.end()) first = chosen->second;
  named.erase(chosen != named.end() ? "default" : first_name);
  return first;
}

// The system text that a ChatML template writes when the chat brings none: the first string literal
// of the form <|im_start|>system NEWLINE text <|im_end|> whose text is plain.
std::string default_system_of(std::string_view jinja) {
  constexpr std::string_view kOpen = "<|im_start|>system", kClose = "<|im_end|>";
  for (std::size_t at = 0; (at = jinja.find(kOpen, at)) != std::string_view::npos;) {
    at += kOpen.size();
    std::string_view rest = jinja.substr(at);
    if (rest.starts_with("\\n")) {
      rest.remove_prefix(2);
    } else if (rest.starts_with('\n')) {
      rest.remove_prefix(1);
    } else {
      continue;
    }
    const std::size_t end = rest.find(kClose);
    if (end == std::string_view::npos || end == 0) continue;
    const std::string_view text = rest.substr(0, end);
    if (text.find_first_of("'\"{}\\<>") == std::string_view::npos) return std::string(text);
  }
  return {};
}

// "bos_token": "<s>" or {"content": "<s>", ...}
void add_special(const Json& config, Named& special) {
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                          "cls_token", "mask_token"}) {
    const Json* value = member(config, key);
    if (value == nullptr) continue;
    const Json* content = value->is_object() ? member(*value, "content") : value;
    if (content != nullptr && content->is_string() &&
        !content->get_ref<const std::string&>().empty())
      special.emplace(key, content->get<std::string>());
  }
}

}  // namespace

// chat_template.jinja, else tokenizer_config.json, else chat_template.json; further templates from
// either list and from additional_chat_templates.
void import_chat(const SideFiles& files, const Json& config, ImportedTokenizer& out) {
  Named named;
  std::string text = template_of(config, kConfig, named);
  if (text.empty() && !files.chat_json.empty()) {
    constexpr std::string_view kName = "chat_template.json";
    text = template_of(base::parse_json(files.chat_json, kName), kName, named);
  }
  if (!files.chat_jinja.empty()) text = files.chat_jinja;
  for (const auto& [name, jinja] : files.more_templates) named[name] = jinja;
  describe_chat(std::move(text), out.chat);
  out.chat.named = std::move(named);
  add_special(config, out.chat.special);
  if (!files.special_tokens_map.empty())
    add_special(base::parse_json(files.special_tokens_map, kMap), out.chat.special);
}

void describe_chat(std::string jinja, contract::ChatDescription& chat) {
  const bool chatml = jinja.find("<|im_start|>") != std::string::npos &&
                      jinja.find("<|im_end|>") != std::string::npos;
  chat.builtin = chatml ? "chatml" : "";
  chat.default_system = chatml ? default_system_of(jinja) : "";
  chat.jinja = std::move(jinja);
}

}  // namespace quern::convert
