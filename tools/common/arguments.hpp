// Command-line parsing shared by the commands: multi-letter short options, errors as base::Error.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace quern::tool {

// "-ctk" -> "--cache-type-k" ...: CLI11 of Debian 12 has no multi-letter short options; this is the one
// table of them (`quern COMMAND --help` lists the long names).
std::vector<std::string> expand_aliases(const std::vector<std::string>& arguments);

// Parses; prints --help to standard output and returns true when the command should stop there. A wrong
// option is a usage error that names it.
bool parse_arguments(CLI::App& app, const std::vector<std::string>& arguments);

// A number in [low, high]; CLI::Range lets NaN through, this does not.
CLI::Validator finite_range(double low, double high);

}  // namespace quern::tool
