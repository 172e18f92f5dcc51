#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_parts.hpp"
#include "text/tokenizer.hpp"

namespace quern::convert {

using base::cat;
using base::Json;

namespace {

constexpr std::string_view kConfig = "tokenizer_config.json", kMap = "special_tokens_map.json";

// "bos_token": "<s>", {"content": "<s>", ...} or null.
std::string token_text(const Json& config, std::string_view key) {
  const Json* value = member(config, key);
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  const Json* content = member(*value, "content");
  return content != nullptr && content->is_string() ? content->get<std::string>() : std::string();
}

Json parse(const std::string& text, std::string_view name) {
  return text.empty() ? Json::object() : base::parse_json(text, name);
}

// The id that the files name; what the source itself says where they name none.
std::optional<std::int32_t> special_id(const text::Tokenizer& tokenizer, const Json& config,
                                       const Json& map, std::string_view key,
                                       std::optional<std::int32_t> fallback) {
  std::string content = token_text(config, key);
  if (content.empty()) content = token_text(map, key);
  const std::int32_t id = content.empty() ? -1 : tokenizer.id_of(content);
  return id < 0 ? fallback : std::optional<std::int32_t>(id);
}

// The template in tokenizer_config.json: a string, or a list of {name, template} with a "default".
std::string template_of(const Json& config, std::vector<std::string>& notices) {
  const Json* value = member(config, "chat_template");
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  if (!value->is_array())
    base::reject(cat(kConfig, ": chat_template"), "wrong kind of value", value->type_name());
  std::string first, chosen;
  for (const Json& entry : *value) {
    const std::string name = text_member(entry, "name", cat(kConfig, ": chat_template"));
    const std::string text = text_member(entry, "template", cat(kConfig, ": chat_template"));
    if (first.empty()) first = text;
    if (name == "default") chosen = text;
  }
  if (value->size() > 1)
    notices.push_back(
        cat(kConfig, ": of ", value->size(), " chat templates the default one is taken"));
  return chosen.empty() ? first : chosen;
}

std::string chat_template(const SideFiles& files, const Json& config,
                          std::vector<std::string>& notices) {
  if (!files.chat_jinja.empty()) return files.chat_jinja;
  std::string text = template_of(config, notices);
  if (!text.empty() || files.chat_json.empty()) return text;
  constexpr std::string_view kName = "chat_template.json";
  return text_member(base::parse_json(files.chat_json, kName), "chat_template", kName);
}

}  // namespace

std::string named_token(const SideFiles& files, std::string_view key) {
  std::string text = token_text(parse(files.tokenizer_config, kConfig), key);
  return text.empty() ? token_text(parse(files.special_tokens_map, kMap), key) : text;
}

bool config_flag(const SideFiles& files, std::string_view key, bool fallback) {
  return flag_member(parse(files.tokenizer_config, kConfig), key, fallback, kConfig);
}

std::int64_t config_integer(const SideFiles& files, std::string_view key, std::int64_t fallback,
                            std::int64_t most) {
  const Json config = parse(files.tokenizer_config, kConfig);
  if (member(config, key) == nullptr) return fallback;
  return std::min(id_member(config, key, kConfig), most);
}

void import_side_files(const SideFiles& files, ImportedTokenizer& out) {
  const Json config = parse(files.tokenizer_config, kConfig);
  const Json map = parse(files.special_tokens_map, kMap);
  if (out.description.model != "none") {
    const text::Tokenizer tokenizer(out.description, out.tables, "tokenizer.json");
    const auto id = [&](std::string_view key, std::optional<std::int32_t> fallback) {
      return special_id(tokenizer, config, map, key, fallback);
    };
    out.tokens.bos = id("bos_token", out.tokens.bos);
    out.tokens.pad = id("pad_token", out.tokens.pad);
    out.tokens.unk = id("unk_token", out.tokens.unk);
    out.tokens.mask = id("mask_token", out.tokens.mask);
    if (const auto eos = id("eos_token", std::nullopt)) out.tokens.eos = {*eos};
    complete_affixes(flag_member(config, "add_bos_token", files.add_bos, kConfig),
                     flag_member(config, "add_eos_token", files.add_eos, kConfig), out);
  }
  describe_chat(chat_template(files, config, out.notices), out.chat);
}

namespace {

void add_affix(std::int32_t id, bool front, std::vector<std::int32_t>& ids,
               std::vector<std::int32_t>& types) {
  ids.insert(front ? ids.begin() : ids.end(), id);
  types.insert(front ? types.begin() : types.end(), 0);
}

}  // namespace

void complete_affixes(bool add_bos, bool add_eos, ImportedTokenizer& out) {
  contract::TokenizerDescription& d = out.description;
  std::vector<std::int32_t>& prefix = d.prefix_ids;
  std::vector<std::int32_t>& suffix = d.suffix_ids;
  const auto contains = [](const std::vector<std::int32_t>& ids, std::int32_t id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  const auto any_eos = [&] {
    return std::any_of(out.tokens.eos.begin(), out.tokens.eos.end(),
                       [&](auto id) { return contains(suffix, id); });
  };
  if (add_bos && out.tokens.bos && !contains(prefix, *out.tokens.bos)) {
    add_affix(*out.tokens.bos, true, prefix, d.prefix_types);
    if (d.pair) add_affix(*out.tokens.bos, true, d.pair->prefix_ids, d.pair->prefix_types);
  }
  if (add_eos && !out.tokens.eos.empty() && !any_eos()) {
    const std::int32_t eos = out.tokens.eos.front();
    add_affix(eos, false, suffix, d.suffix_types);
    if (d.pair) add_affix(eos, false, d.pair->suffix_ids, d.pair->suffix_types);
  }
  out.tokens.add_bos = out.tokens.bos && contains(prefix, *out.tokens.bos);
  out.tokens.add_eos = any_eos();
}

namespace {

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

}  // namespace

void describe_chat(std::string jinja, contract::ChatDescription& chat) {
  const bool chatml = jinja.find("<|im_start|>") != std::string::npos &&
                      jinja.find("<|im_end|>") != std::string::npos;
  chat.builtin = chatml ? "chatml" : "";
  chat.default_system = chatml ? default_system_of(jinja) : "";
  chat.jinja = std::move(jinja);
}

}  // namespace quern::convert
