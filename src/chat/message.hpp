// One message of a conversation, as people and templates see it.
#pragma once

#include <string>

namespace quern::chat {

struct Message {
  std::string role;       // "system", "user", "assistant", "tool"
  std::string content;
  std::string reasoning;  // thoughts of an assistant's message, "" without
  friend bool operator==(const Message&, const Message&) = default;
};

}  // namespace quern::chat
