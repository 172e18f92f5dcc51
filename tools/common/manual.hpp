// Manuals and shell completions from the option tables. Strings: the commands print or write them. The same options
// give the same bytes: no dates.
#pragma once

#include <span>
#include <string>

#include "option_table.hpp"

namespace quern::tool {

struct ProgramText {
  std::string name, version, help;
  std::vector<CommandText> commands;  // of quern; of a program without commands its one entry has no name
};

std::string man_page(const CommandText& command, const ProgramText& program);
std::string man_overview(const ProgramText& program);  // quern.1: the commands
std::string markdown_page(const CommandText& command);

std::string bash_completion(const ProgramText& program);
std::string zsh_completion(const ProgramText& program);
std::string fish_completion(const ProgramText& program);

// What `--format` and the file names of an installation know.
enum class ManualFormat { man, markdown, bash, zsh, fish };
ManualFormat parse_manual_format(const std::string& word);  // usage error otherwise

}  // namespace quern::tool
