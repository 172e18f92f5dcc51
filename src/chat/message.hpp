// One message of a chat, and how it becomes what templates read. Not here: rendering (format.hpp),
// conversations and their files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/marked_text.hpp"
#include "jinja/data.hpp"

namespace quern::chat {

struct Message {
  std::string role;  // "system", "user", "assistant", "tool" ...
  // Untrusted where people or tools wrote it. What a model of ours generated may carry its control
  // tokens as trusted bytes; then they are encoded as the tokens that they were.
  base::MarkedText content;
  std::optional<base::MarkedText> reasoning_content;
  // A JSON object of every other member (tool_calls, tool_call_id, name ...), "" for none. A member
  // "content" there (a list of parts) takes the place of `content`.
  std::string fields_json;
  friend bool operator==(const Message&, const Message&) = default;
};

// What somebody wrote: all of it untrusted.
Message message(std::string role, std::string text);

// One message as the chat completions API writes it. Input errors name `where`.
Message message_of_json(std::string_view json, std::string_view where);
// A list of such messages: {"messages": [...]} or [...].
std::vector<Message> messages_of_json(std::string_view json, std::string_view where);

// As templates read it: members that are null are left out, reasoning under each of its names,
// arguments of tool calls as objects where they are JSON in a string. The role is trusted when it
// is one that chat templates know, so that a template may build a control token of it.
jinja::Data to_data(const Message& message, std::string_view where);

// Of a list of messages as data: makes the roles that templates know trusted.
void trust_roles(jinja::Data& messages);

}  // namespace quern::chat
