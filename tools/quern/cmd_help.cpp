// quern help: the help of a command, or manuals and completions of all of them, made from the option tables.

#include <iostream>

#include "arguments.hpp"
#include "command_options.hpp"
#include "command_table.hpp"
#include "manual_files.hpp"
#include "version.hpp"

namespace quern::tool {

namespace {

struct HelpOptions {
  std::string command, format, folder;
};

ProgramText program_text() {
  ProgramText program{"quern", version(), "runs Transformer language models on CPUs", {}};
  for (const Command& command : all_commands())
    visit_options(command.run, [&](CLI::App& app) { program.commands.push_back(command_text(app)); });
  return program;
}

}  // namespace

int cmd_help(const std::vector<std::string>& arguments) {
  CLI::App app("Prints the help of a command, or its manual, or completions for a shell.", "quern help");
  HelpOptions options;
  app.add_option("COMMAND", options.command, "the command; without it: all");
  app.add_option("--format", options.format, "man, markdown, bash, zsh or fish")->type_name("FORMAT");
  app.add_option("--write-to", options.folder, "write all manuals and completions below this directory")->type_name("DIR");
  if (parse_arguments(app, arguments)) return 0;
  if (!options.folder.empty()) {
    write_manuals(options.folder, program_text());
    return 0;
  }
  if (!options.format.empty()) {
    std::cout << manual_text(parse_manual_format(options.format), program_text(), options.command);
    return 0;
  }
  for (const Command& command : all_commands())
    if (options.command == command.name) return command.run({"--help"});
  std::cout << manual_text(ManualFormat::markdown, program_text(), options.command);  // names the known ones
  return 0;
}

}  // namespace quern::tool
