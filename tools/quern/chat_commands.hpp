// The commands of a chat: lines that begin with /. A table of them (chat_commands.cpp) with what each
// does; not here: reading lines, answering.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat_input.hpp"
#include "chat_session.hpp"
#include "terminal/completion.hpp"

namespace quern::tool {

// A chat as the commands see it.
struct ChatDesk {
  ChatSession& chat;
  ChatInput& input;
  std::string attached = {};  // of /read: stands before the next message
  std::string prefill = {};   // of /undo: the next line begins with it
};

enum class AfterCommand { next_line, answer, leave };

// line: "/name arguments". Usage error for an unknown command (with the nearest one) or wrong arguments;
// input and environment errors of files. Nothing has changed then.
AfterCommand run_command(ChatDesk& desk, std::string_view line);

// Commands, options of /set and words of others, paths.
terminal::Completer command_completer();

}  // namespace quern::tool
