// The options of a command without running it: what manuals, completions and the configuration file are made of.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace quern::tool {

using CommandFunction = int (*)(const std::vector<std::string>& arguments);

// Calls `visit` with the options that `command` builds, where parse_arguments() would parse. A command that calls
// parse_arguments() before any work needs nothing else to have a manual, completions and defaults in a file.
void visit_options(CommandFunction command, const std::function<void(CLI::App&)>& visit);

std::vector<std::string> aliases_of(const std::string& long_name);  // "--cache-type-k" -> {"-ctk"}

}  // namespace quern::tool
