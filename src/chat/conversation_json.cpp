#include "chat/conversation_json.hpp"

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "contract/json_printer.hpp"

namespace quern::chat {

namespace {

using base::cat;
using base::Json;
using base::JsonObject;

constexpr std::size_t kMaxTokens = std::size_t{1} << 40;

// JSON strings are UTF-8; bytes that are not (a file read into a message) are kept as hexadecimal digits.
bool is_utf8(const std::string& text) {
  try {
    return !Json(text).dump().empty();
  } catch (const Json::exception&) {
    return false;
  }
}

// Bytes [begin, end) that the text's untrusted ranges leave: a model's own control tokens.
std::vector<base::MarkedText::Range> trusted_of(const base::MarkedText& text) {
  std::vector<base::MarkedText::Range> trusted;
  std::size_t at = 0;
  for (const auto& range : text.untrusted) {
    if (range.begin > at) trusted.push_back({at, range.begin});
    at = range.end;
  }
  if (at < text.text.size()) trusted.push_back({at, text.text.size()});
  return trusted;
}

std::string hex_of(const std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    hex += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return hex;
}

// A string where that says all; else an object.
Json text_json(const base::MarkedText& text) {
  const auto trusted = trusted_of(text);
  const bool utf8 = is_utf8(text.text);
  if (utf8 && trusted.empty()) return text.text;
  Json object;
  if (utf8) object["text"] = text.text; else object["hex"] = hex_of(text.text);
  if (trusted.empty()) return object;
  object["trusted"] = Json::array();
  for (const auto& range : trusted) object["trusted"].push_back({range.begin, range.end});
  return object;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::string bytes_of_hex(const std::string& hex, const std::string& path) {
  std::string text;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = digit_of(hex[i]), low = i + 1 < hex.size() ? digit_of(hex[i + 1]) : -1;
    if (high < 0 || low < 0) base::reject(path, "not pairs of hexadecimal digits");
    text += static_cast<char>(high * 16 + low);
  }
  return text;
}

// Two whole numbers [begin, end).
TokenSpan span_of(const Json& value, const std::string& path) {
  if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() || !value[1].is_number_unsigned())
    base::reject(path, "not the two ends of a range");
  const TokenSpan span{value[0].get<std::size_t>(), value[1].get<std::size_t>()};
  if (span.begin > span.end || span.end > kMaxTokens) base::reject(path, "no range", cat(span.begin, ", ", span.end));
  return span;
}

base::MarkedText text_of(JsonObject& object, const char* key) {
  if (!object.get(key).is_object()) return message("", object.get_string(key)).content;
  JsonObject parts = object.get_object(key);
  base::MarkedText out;
  out.text = parts.has("hex") ? bytes_of_hex(parts.get_string("hex"), object.path_of(key)) : parts.get_string("text");
  std::size_t at = 0;
  if (const Json* ranges = parts.find("trusted")) {
    if (!ranges->is_array()) base::reject(parts.path_of("trusted"), "not an array");
    for (const Json& value : *ranges) {
      const TokenSpan range = span_of(value, parts.path_of("trusted"));
      if (range.begin < at || range.end <= range.begin || range.end > out.text.size())
        base::reject(parts.path_of("trusted"), "ranges overlap or lie outside the text");
      if (range.begin > at) out.untrusted.push_back({at, range.begin});
      at = range.end;
    }
  }
  if (at < out.text.size()) out.untrusted.push_back({at, out.text.size()});
  parts.finish();
  return out;
}

Json message_json(const Message& message, const std::optional<TokenSpan>& span) {
  Json object;
  object["role"] = message.role;
  object["content"] = text_json(message.content);
  if (message.reasoning_content) object["reasoning"] = text_json(*message.reasoning_content);
  if (!message.fields_json.empty()) object["fields"] = message.fields_json;
  if (span) object["tokens"] = {span->begin, span->end};
  return object;
}

struct Entry {
  Message message;
  std::optional<TokenSpan> span;
};

Entry entry_of(const Json& value, const std::string& path) {
  JsonObject object(value, path);
  Entry entry;
  entry.message.role = object.get_string("role");
  entry.message.content = text_of(object, "content");
  if (object.has("reasoning")) entry.message.reasoning_content = text_of(object, "reasoning");
  if (object.has("fields")) {
    entry.message.fields_json = object.get_string("fields");
    if (!base::parse_json(entry.message.fields_json, object.path_of("fields")).is_object())
      base::reject(object.path_of("fields"), "not a JSON object");
  }
  if (object.has("tokens")) entry.span = span_of(object.get("tokens"), object.path_of("tokens"));
  object.finish();
  return entry;
}

Json messages_json(const Conversation& conversation) {
  Json array = Json::array();
  for (std::size_t i = 0; i < conversation.size(); ++i)
    array.push_back(message_json(conversation.messages()[i], conversation.span(i)));
  return array;
}

Conversation conversation_of(const Json& messages, const std::string& path) {
  if (!messages.is_array()) base::reject(path, "not an array");
  Conversation conversation;
  std::vector<TokenSpan> spans;
  bool all = true;  // spans are those of the first messages
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string place = cat(path, "[", i, "]");
    Entry entry = entry_of(messages[i], place);
    conversation.add(std::move(entry.message));
    if (entry.span && (!all || (!spans.empty() && entry.span->begin < spans.back().end)))
      base::reject(place, "tokens of messages overlap or are missing before");
    all = entry.span.has_value();
    if (entry.span) spans.push_back(*entry.span);
  }
  conversation.set_spans(std::move(spans));
  return conversation;
}

}  // namespace

std::string write_conversation(const Conversation& conversation, std::span<const Conversation> branches) {
  Json document;
  document["messages"] = messages_json(conversation);
  for (const Conversation& branch : branches) document["branches"].push_back(messages_json(branch));
  // As deep as it will lie in the document, where nesting is limited too.
  const Json wrapped = base::parse_json(cat("{\"settings\": ", conversation.settings(), "}"), "settings");
  if (wrapped.size() != 1 || !wrapped.begin()->is_object()) base::reject("settings", "not a JSON object");
  document["settings"] = *wrapped.begin();
  return contract::print_json(document);
}

WrittenConversation read_conversation(std::string_view json, std::string_view where) {
  const Json document = base::parse_json(json, where);
  JsonObject object(document, cat(where, ": "));
  WrittenConversation out;
  out.conversation = conversation_of(object.get("messages"), object.path_of("messages"));
  if (const Json* branches = object.find("branches")) {
    const std::string path = object.path_of("branches");
    if (!branches->is_array()) base::reject(path, "not an array");
    for (std::size_t i = 0; i < branches->size(); ++i)
      out.branches.push_back(conversation_of((*branches)[i], cat(path, "[", i, "]")));
  }
  const Json& settings = object.get("settings");
  if (!settings.is_object()) base::reject(object.path_of("settings"), "not an object");
  out.conversation.set_settings(settings.dump());
  object.finish();
  return out;
}

}  // namespace quern::chat
