// The commands of `quern` as a table (main.cpp), for those that speak about all of them.
#pragma once

#include <span>

#include "command.hpp"

namespace quern::tool {

struct Command {
  const char* name;
  CommandFunction run;
  const char* help;
};
std::span<const Command> all_commands();

// quern help [--format man|markdown|bash|zsh|fish] [COMMAND]: manuals and completions from the option tables.
int cmd_help(const std::vector<std::string>& arguments);

}  // namespace quern::tool
