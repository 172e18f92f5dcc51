// Conversation <-> JSON text: the readable part of a session file (docs/SESSION_FILE.md).
#pragma once

#include <string>
#include <string_view>

#include "chat/conversation.hpp"

namespace quern::chat {

// Every message and the settings; the same conversation gives the same text. Input error when the settings
// are no JSON object.
std::string write_conversation(const Conversation& conversation);
// Strict: unknown keys, wrong kinds and spans that overlap are input errors that name the place.
Conversation read_conversation(std::string_view json, std::string_view where);

}  // namespace quern::chat
