// Options from the environment: QUERN_ARG_CTX_SIZE is --ctx-size where the command line does not say. The words behind
// QUERN_ARG_ are those of LLAMA_ARG_* where llama.cpp has the option.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace quern::tool {

// "QUERN_ARG_CTX_SIZE"; "" for an option without a long name, a hidden one, and --help.
std::string environment_name(const CLI::Option& option);
// Every option of the app learns its name (--help shows it).
void name_environment(CLI::App& app);

// The place that a value in the environment came from, for errors: a line of the configuration file.
void set_environment_origin(const std::string& name, const std::string& place);
// " (from QUERN_ARG_THREADS)" when a wrong option in `text` was not on the command line; else "".
std::string blamed_environment(const CLI::App& app, const std::vector<std::string>& arguments, const std::string& text);

}  // namespace quern::tool
