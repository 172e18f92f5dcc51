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

Json text_json(const std::string& text) {
  if (is_utf8(text)) return text;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    hex += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  Json object;
  object["hex"] = hex;
  return object;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::string text_of(JsonObject& object, const char* key) {
  if (!object.get(key).is_object()) return object.get_string(key);
  JsonObject bytes = object.get_object(key);
  const std::string hex = bytes.get_string("hex");
  bytes.finish();
  std::string text;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = digit_of(hex[i]), low = i + 1 < hex.size() ? digit_of(hex[i + 1]) : -1;
    if (high < 0 || low < 0) base::reject(object.path_of(key), "not pairs of hexadecimal digits");
    text += static_cast<char>(high * 16 + low);
  }
  return text;
}

Json message_json(const Message& message, const std::optional<TokenSpan>& span) {
  Json object;
  object["role"] = text_json(message.role);
  object["content"] = text_json(message.content);
  if (!message.reasoning.empty()) object["reasoning"] = text_json(message.reasoning);
  if (span) object["tokens"] = {span->begin, span->end};
  return object;
}

TokenSpan span_of(const Json& value, const std::string& path) {
  if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() || !value[1].is_number_unsigned())
    base::reject(path, "not two token positions");
  const TokenSpan span{value[0].get<std::size_t>(), value[1].get<std::size_t>()};
  if (span.begin > span.end || span.end > kMaxTokens) base::reject(path, "no range of tokens", cat(span.begin, ", ", span.end));
  return span;
}

struct Entry {
  Message message;
  std::optional<TokenSpan> span;
};

Entry entry_of(const Json& value, const std::string& path) {
  JsonObject object(value, path);
  Entry entry;
  entry.message.role = text_of(object, "role");
  entry.message.content = text_of(object, "content");
  if (object.has("reasoning")) entry.message.reasoning = text_of(object, "reasoning");
  if (object.has("tokens")) entry.span = span_of(object.get("tokens"), object.path_of("tokens"));
  object.finish();
  return entry;
}

}  // namespace

std::string write_conversation(const Conversation& conversation) {
  Json document;
  document["messages"] = Json::array();
  for (std::size_t i = 0; i < conversation.size(); ++i)
    document["messages"].push_back(message_json(conversation.messages()[i], conversation.span(i)));
  // As deep as it will lie in the document, where nesting is limited too.
  const Json wrapped = base::parse_json(cat("{\"settings\": ", conversation.settings(), "}"), "settings");
  if (wrapped.size() != 1 || !wrapped.begin()->is_object()) base::reject("settings", "not a JSON object");
  document["settings"] = *wrapped.begin();
  return contract::print_json(document);
}

Conversation read_conversation(std::string_view json, std::string_view where) {
  const Json document = base::parse_json(json, where);
  JsonObject object(document, cat(where, ": "));
  const Json& messages = object.get("messages");
  if (!messages.is_array()) base::reject(object.path_of("messages"), "not an array");
  Conversation conversation;
  std::vector<TokenSpan> spans;
  bool all = true;  // spans are those of the first messages
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string path = cat(object.path_of("messages"), "[", i, "]");
    Entry entry = entry_of(messages[i], path);
    conversation.add(std::move(entry.message));
    if (entry.span && (!all || (!spans.empty() && entry.span->begin < spans.back().end)))
      base::reject(path, "tokens of messages overlap or are missing before");
    all = entry.span.has_value();
    if (entry.span) spans.push_back(*entry.span);
  }
  conversation.set_spans(std::move(spans));
  const Json& settings = object.get("settings");
  if (!settings.is_object()) base::reject(object.path_of("settings"), "not an object");
  conversation.set_settings(settings.dump());
  object.finish();
  return conversation;
}

}  // namespace quern::chat
