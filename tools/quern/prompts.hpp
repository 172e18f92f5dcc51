// Where the prompts of `quern run` come from: -p (again and again), files, a file of prompts, or
// standard input; in the order they were given.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model_options.hpp"

namespace quern::tool {

struct PromptOptions {
  std::vector<std::string> texts;           // -p
  std::vector<std::string> files;           // -f
  std::string prompts_file;                 // one a line, or JSON lines
  std::string ids_file;                     // token ids instead of text
  bool escapes = false;                     // -e: \n and the like in -p
};
void add_prompt_options(CLI::App& app, PromptOptions& options);

struct Prompt {
  std::string name;                         // "prompt 2", "FILE:3"; for headings and messages
  std::string text;                         // empty with an ids_file
  std::optional<std::string> system;        // of its own, from a JSON line
};

// At least one; a single one without a text for an ids_file. Input errors name file and line.
std::vector<Prompt> read_prompts(const PromptOptions& options);
// Whether the answers form a list, even if it has one element.
bool is_list(const PromptOptions& options);

}  // namespace quern::tool
