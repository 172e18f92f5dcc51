#include "chat/message.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "base/strings.hpp"

namespace quern::chat {

namespace {

using jinja::Data;
using jinja::Trust;

constexpr std::string_view kRoles[] = {"system",      "developer",     "user",        "assistant",
                                       "model",       "tool",          "function",    "ipython",
                                       "observation", "tool_response", "environment", "critic"};

Trust trust_of_role(std::string_view role) {
  const bool known = std::find(std::begin(kRoles), std::end(kRoles), role) != std::end(kRoles);
  return known ? Trust::trusted : Trust::untrusted;
}

void drop_nulls(Data& object) {
  std::erase_if(object.members,
                [](const Data::Member& member) { return member.second.kind == Data::Kind::none; });
}

// {"arguments": "{...}"} -> {"arguments": {...}}: templates print them as JSON.
void open_arguments(Data& calls) {
  for (Data& call : calls.items) {
    for (auto& [key, value] : call.members) {
      if (key.text != "function" || value.kind != Data::Kind::object) continue;
      const Data* arguments = value.find("arguments");
      if (arguments == nullptr || arguments->kind != Data::Kind::text) continue;
      try {
        Data parsed = Data::parse(arguments->text.text, "arguments", Trust::untrusted);
        if (parsed.kind == Data::Kind::object) value.set("arguments", std::move(parsed));
      } catch (const base::Error&) {
        // not JSON: it stays the text that it is
      }
    }
  }
}

Message from_object(const base::Json& object, std::string_view where) {
  if (!object.is_object()) base::reject(where, "not a message", object.type_name(), "an object");
  Message out;
  base::Json rest = base::Json::object();
  for (const auto& [key, value] : object.items()) {
    if (key == "role") {
      if (!value.is_string())
        base::reject(base::cat(where, ".role"), "wrong kind of value", value.type_name(),
                     "a string");
      out.role = value.get<std::string>();
    } else if (key == "content" && value.is_string()) {
      out.content = jinja::marked(value.get<std::string>(), Trust::untrusted);
    } else if ((key == "reasoning_content" || key == "reasoning" || key == "thinking") &&
               value.is_string()) {
      if (!out.reasoning_content || key == "reasoning_content")
        out.reasoning_content = jinja::marked(value.get<std::string>(), Trust::untrusted);
    } else {
      rest[key] = value;
    }
  }
  if (out.role.empty()) base::reject(where, "a message without a role");
  const auto content = object.find("content");
  if (content == object.end() || content->is_null()) rest["content"] = nullptr;
  if (!rest.empty()) out.fields_json = rest.dump();
  return out;
}

}  // namespace

Message message(std::string role, std::string text) {
  return {std::move(role), jinja::marked(std::move(text), Trust::untrusted), std::nullopt, ""};
}

Message message_of_json(std::string_view json, std::string_view where) {
  return from_object(base::parse_json(json, where), where);
}

std::vector<Message> messages_of_json(std::string_view json, std::string_view where) {
  const base::Json document = base::parse_json(json, where);
  const auto member = document.is_object() ? document.find("messages") : document.end();
  const base::Json& list = document.is_object() && member != document.end() ? *member : document;
  if (!list.is_array()) base::reject(where, "no list of messages", list.type_name());
  std::vector<Message> out;
  for (const base::Json& item : list)
    out.push_back(from_object(item, base::cat(where, ": messages[", out.size(), "]")));
  return out;
}

void trust_roles(Data& messages) {
  for (Data& item : messages.items)
    for (auto& [key, value] : item.members)
      if (key.text == "role" && trust_of_role(value.text.text) == Trust::trusted)
        value.text.untrusted.clear();
}

Data to_data(const Message& message, std::string_view where) {
  Data out;
  out.set("role", Data::of(message.role, trust_of_role(message.role)));
  out.set("content", Data::of(message.content));
  if (!message.fields_json.empty()) {
    Data fields = Data::parse(message.fields_json, where, Trust::untrusted);
    if (fields.kind != Data::Kind::object)
      base::reject(where, "fields of a message are no JSON object");
    for (auto& [key, value] : fields.members) {
      if (key.text == "tool_calls") open_arguments(value);
      if (key.text != "role") out.set(key.text, std::move(value));
    }
  }
  if (message.reasoning_content)
    for (const char* name : {"reasoning_content", "thinking"})
      if (out.find(name) == nullptr) out.set(name, Data::of(*message.reasoning_content));
  drop_nulls(out);
  return out;
}

}  // namespace quern::chat
