// The options of a command as data, read off its CLI11 App: what manuals and completions are made of.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace quern::tool {

struct OptionText {
  std::vector<std::string> names;    // "-m", "--model", and multi-letter aliases such as "-ctk"; none: positional
  std::string positional;            // its word in the usage
  std::string value;                 // "PATH", "N"; "" of a flag
  std::vector<std::string> choices;  // all it may be
  std::string help, environment;
  bool required = false, takes_path = false;
};

struct CommandText {
  std::string program, name;  // "quern", "run"; name "" of a program with one command
  std::string help, footer;
  std::vector<OptionText> options;  // positionals first; no hidden ones

  std::string full_name(char between) const { return name.empty() ? program : program + between + name; }
};

// app's name is "quern run" or "quern-convert".
CommandText command_text(const CLI::App& app);

}  // namespace quern::tool
