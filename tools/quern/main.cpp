// quern: the command table, the one place that catches errors, and --version.

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "command_table.hpp"
#include "config_file.hpp"
#include "signals.hpp"
#include "version.hpp"

namespace quern::tool {
namespace {

constexpr Command kCommands[] = {
    {"chat", cmd_chat, "a conversation in the terminal, with editing, history and sessions"},
    {"run", cmd_run, "answer a prompt, printing tokens as they come and a timing table"},
    {"batch", cmd_batch, "answer a file of prompts or OpenAI batch lines, many at once; resumes where it was killed"},
    {"embed", cmd_embed, "texts to vectors, as JSON lines or a NumPy array"},
    {"classify", cmd_classify, "labels of texts, or of each of their tokens, with probabilities"},
    {"fill", cmd_fill, "the most probable tokens for the mask tokens of a text"},
    {"inspect", cmd_inspect, "print the model's architecture, equations and parameters as a table"},
    {"verify", cmd_verify, "check a model: checksums, shapes, causality, kernels, cache, positions"},
    {"plan", cmd_plan, "will it fit and how fast can it be: before anything is loaded"},
    {"eval", cmd_eval, "perplexity, divergence from another model or cache type, multiple choice"},
    {"bench", cmd_bench, "measure prefill (pp) and decode (tg) speed"},
    {"logits", cmd_logits, "write the logits of every position as a NumPy array"},
    {"template", cmd_template, "print what a chat template makes of messages; needs no weights"},
    {"grammar", cmd_grammar, "what a grammar, JSON schema or regular expression allows; needs no model"},
    {"tokenize", cmd_tokenize, "text to token ids and back; needs no weights"},
    {"help", cmd_help, "the help of a command, or its manual (--format man); completions for bash, zsh and fish"},
};

void print_help(std::ostream& out) {
  out << "quern runs Transformer language models on CPUs.\n\n"
         "usage: quern COMMAND [options]      quern COMMAND --help\n\ncommands:\n";
  for (const Command& command : kCommands) {
    std::string name(command.name);
    name.resize(11, ' ');
    out << "  " << name << command.help << "\n";
  }
  out << "\nexamples:\n"
         "  quern-convert SmolLM2-135M-Instruct.Q4_1.gguf smollm2     make a model directory\n"
         "  quern run -m smollm2 -p \"What is the capital of France?\"  ask it\n"
         "  quern chat -m smollm2                                     talk with it\n"
         "  quern inspect -m smollm2                                  what is inside\n"
         "  quern bench -m smollm2 -p 512 -n 128                      how fast it runs here\n"
         "\nexit codes: 0 done, 1 some items or a check failed, 2 usage, 3 input rejected, 4 environment, 70 internal\n";
}

// Defaults of the configuration file; every command's options are known, so that no key is unknown in silence.
void read_config(const std::string& running) {
  std::vector<ConfigCommand> commands;
  for (const Command& command : kCommands) commands.push_back({command.name, command.run});
  apply_config({std::move(commands), true, {"convert"}}, running);
}

int dispatch(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    print_help(std::cerr);
    return static_cast<int>(base::ExitCode::usage);
  }
  const std::string& word = arguments.front();
  if (word == "--help" || word == "-h" || (word == "help" && arguments.size() == 1)) {
    print_help(std::cout);
    return 0;
  }
  if (word == "help") return cmd_help({arguments.begin() + 1, arguments.end()});  // whatever the configuration file says
  if (word == "--version") {
    print_version(std::cout, "quern");
    return 0;
  }
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) {
    names.push_back(command.name);
    if (word != command.name) continue;
    read_config(word);
    return command.run({arguments.begin() + 1, arguments.end()});
  }
  const std::string near = base::nearest(word, names);
  base::usage_error("", base::cat("unknown command \"", base::printable(word, 60), "\"",
                                  near.empty() ? "" : base::cat(", did you mean \"", near, "\"?"),
                                  "; known: ", base::join(names)));
}

}  // namespace

std::span<const Command> all_commands() {
  return kCommands;
}

}  // namespace quern::tool

int main(int argc, char** argv) {
  using quern::base::ExitCode;
  quern::tool::open_standard_streams();
  quern::tool::install_signal_handlers();
  int code = 0;
  try {
    code = quern::tool::dispatch({argv + 1, argv + argc});
    std::cout.flush();
    if (!std::cout) throw quern::base::Error(ExitCode::environment, "standard output", "cannot write");
  } catch (const quern::base::Error& error) {
    std::fprintf(stderr, "quern: error: %s\n", quern::base::printable(error.what(), 500).c_str());
    code = static_cast<int>(error.code());
  } catch (const std::filesystem::filesystem_error& error) {  // such as names longer than a file system takes
    std::fprintf(stderr, "quern: error: %s: %s\n", quern::base::printable(error.path1().string(), 300).c_str(),
                 error.code().message().c_str());
    code = static_cast<int>(ExitCode::environment);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "quern: error: out of memory\n");
    code = static_cast<int>(ExitCode::environment);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quern: internal error: %s\n", quern::base::printable(error.what(), 500).c_str());
    code = static_cast<int>(ExitCode::internal);
  }
  quern::tool::raise_pending_signal();
  return code;
}
