// Conversation <-> JSON text: the readable part of a session file (docs/SESSION_FILE.md).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/conversation.hpp"

namespace quern::chat {

// Every message and the settings, and the messages of branches that are kept; the same conversation gives the
// same text. Input error when the settings are no JSON object.
std::string write_conversation(const Conversation& conversation, std::span<const Conversation> branches = {});

struct WrittenConversation {
  Conversation conversation;
  std::vector<Conversation> branches;  // without settings
};
// Strict: unknown keys, wrong kinds and spans that overlap are input errors that name the place.
WrittenConversation read_conversation(std::string_view json, std::string_view where);

}  // namespace quern::chat
