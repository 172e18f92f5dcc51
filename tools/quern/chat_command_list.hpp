// The functions behind the table of chat_commands.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat_commands.hpp"

namespace quern::tool {

using CommandArguments = std::string_view;  // what stands behind the name, without white space around

// ---- chat_commands_edit.cpp: what changes the conversation
AfterCommand command_clear(ChatDesk& desk, CommandArguments arguments);
AfterCommand command_regen(ChatDesk& desk, CommandArguments arguments);
AfterCommand command_undo(ChatDesk& desk, CommandArguments arguments);
AfterCommand command_edit(ChatDesk& desk, CommandArguments arguments);
AfterCommand command_delete(ChatDesk& desk, CommandArguments arguments);
AfterCommand command_branch(ChatDesk& desk, CommandArguments arguments);
AfterCommand command_read(ChatDesk& desk, CommandArguments arguments);
AfterCommand command_system(ChatDesk& desk, CommandArguments arguments);

// ---- chat_commands_show.cpp: what shows and sets
AfterCommand command_show(ChatDesk& desk, CommandArguments arguments);
AfterCommand command_stats(ChatDesk& desk, CommandArguments arguments);
AfterCommand command_context(ChatDesk& desk, CommandArguments arguments);
AfterCommand command_set(ChatDesk& desk, CommandArguments arguments);
AfterCommand command_think(ChatDesk& desk, CommandArguments arguments);
AfterCommand command_save(ChatDesk& desk, CommandArguments arguments);
AfterCommand command_load(ChatDesk& desk, CommandArguments arguments);

// "3" -> 3; usage error naming `command` otherwise.
std::size_t number_argument(std::string_view command, std::string_view word);
// Splits "3 text" into "3" and "text".
std::pair<std::string_view, std::string_view> first_word(std::string_view text);

}  // namespace quern::tool
