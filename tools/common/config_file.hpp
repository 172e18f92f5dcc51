// Defaults in a file: $QUERN_CONFIG, else $XDG_CONFIG_HOME/quern/config.toml, else ~/.config/quern/config.toml.
// Keys are the long names of options, a section per command; keys above the first section hold for every command that
// has the option. The command line beats the environment, the environment beats the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "command_options.hpp"

namespace quern::tool {

struct ConfigEntry {
  std::string section, key, value;  // section "": above the first; a list's values joined with commas
  std::size_t line = 0;
};

// A subset of TOML: [section], key = value, # comments; a value is a bare word, a "string" or 'string', or a list of
// them. Input errors name the line.
std::vector<ConfigEntry> parse_config(std::string_view text, std::string_view where);

struct ConfigCommand {
  std::string name;
  CommandFunction run;
};
struct ConfigScope {
  std::vector<ConfigCommand> commands;  // of this program
  bool common = false;                  // whether keys above the first section are its own
  std::vector<std::string> foreign;     // sections of other programs: not looked at; empty: all others
};
// Puts what the file says of `running` into the environment, where that does not say otherwise; a key that no option
// has is an input error.
void apply_config(const ConfigScope& scope, const std::string& running);

}  // namespace quern::tool
