#include "chat_commands.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iostream>
#include <utility>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "chat_command_list.hpp"

namespace quern::tool {

namespace {

AfterCommand command_help(ChatDesk& desk, CommandArguments arguments);
AfterCommand command_exit(ChatDesk&, CommandArguments) {
  return AfterCommand::leave;
}

enum class Takes { nothing, words, path, setting };

struct ChatCommand {
  std::string_view name, arguments, help;
  AfterCommand (*run)(ChatDesk&, CommandArguments);
  Takes takes = Takes::words;
  std::string_view words = {};  // that Tab completes
};

constexpr std::array<ChatCommand, 21> kCommands = {{
    {"help", "", "this list (/? too)", command_help, Takes::nothing},
    {"exit", "", "leave (Ctrl-D, /bye, /quit too)", command_exit, Takes::nothing},
    {"clear", "", "forget all messages but the system message", command_clear, Takes::nothing},
    {"regen", "", "another answer to the last message", command_regen, Takes::nothing},
    {"undo", "", "take back the last message and its answer", command_undo, Takes::nothing},
    {"edit", "[N [TEXT]]", "change message N (none: the last of yours), in $EDITOR without TEXT", command_edit},
    {"delete", "N", "remove message N", command_delete},
    {"branch", "[N | list | go K]", "go on from message N (none: here) and keep the rest as a branch", command_branch,
     Takes::words, "list go"},
    {"read", "FILE", "put the text of FILE before the next message", command_read, Takes::path},
    {"system", "[TEXT]", "show or set the system message (\"\" removes it)", command_system},
    {"set", "[OPTION [VALUE]]", "change an option of the command line: /set temp 0.5", command_set, Takes::setting},
    {"show", "[N]", "the messages with their numbers, or message N", command_show},
    {"stats", "", "counts and speeds of the last answer and of the chat", command_stats, Takes::nothing},
    {"context", "", "how full the context is", command_context, Takes::nothing},
    {"think", "on | off | auto | hide | show", "let the model think or not; hide its thoughts", command_think,
     Takes::words, "on off auto hide show"},
    {"save", "FILE", "the chat with its cache, to go on with later", command_save, Takes::path},
    {"load", "FILE", "go on with a chat that was saved", command_load, Takes::path},
    {"?", "", "", command_help, Takes::nothing},
    {"bye", "", "", command_exit, Takes::nothing},
    {"quit", "", "", command_exit, Takes::nothing},
    {"retry", "", "", command_regen, Takes::nothing},
}};

AfterCommand command_help(ChatDesk&, CommandArguments) {
  for (const ChatCommand& command : kCommands) {
    if (command.help.empty()) continue;
    std::string usage = base::cat("/", command.name, command.arguments.empty() ? "" : " ", command.arguments);
    if (usage.size() < 26) usage.resize(26, ' ');
    std::cout << usage << "  " << command.help << "\n";
  }
  std::cout << "\nA message that begins with / is sent as //...  \"\"\" starts and ends a message of several lines,\n"
               "so does \\ at the end of a line. Ctrl-C stops an answer, Ctrl-G opens $EDITOR, Ctrl-R searches what\n"
               "was typed before, Tab completes.\n";
  return AfterCommand::next_line;
}

[[noreturn]] void unknown(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ChatCommand& command : kCommands) names.push_back(command.name);
  std::string near = base::nearest(std::string(name), names);
  for (const std::string_view known : names)  // two letters swapped: "hlep"
    if (near.empty() && known.size() == name.size() && std::is_permutation(known.begin(), known.end(), name.begin()))
      near = known;
  base::usage_error(
      base::cat("/", base::printable(name, 40)),
      base::cat("unknown command",
                near.empty() ? std::string("; /help lists them") : base::cat(", did you mean /", near, "?"),
                " (a message that begins with / is sent as //...)"));
}

}  // namespace

std::pair<std::string_view, std::string_view> first_word(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  const std::size_t end = std::min(text.find_first_of(kSpace), text.size());
  std::string_view rest = text.substr(end);
  rest.remove_prefix(std::min(rest.find_first_not_of(kSpace), rest.size()));
  const std::size_t last = rest.find_last_not_of(kSpace);
  return {text.substr(0, end), rest.substr(0, last == std::string_view::npos ? 0 : last + 1)};
}

std::size_t number_argument(std::string_view command, std::string_view word) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (word.empty() || error != std::errc() || end != word.data() + word.size())
    base::usage_error(command, base::cat("needs the number of a message, as /show lists them (got \"",
                                         base::printable(word, 20), "\")"));
  return number;
}

AfterCommand run_command(ChatDesk& desk, std::string_view line) {
  const auto [name, arguments] = first_word(line.substr(1));
  for (const ChatCommand& command : kCommands) {
    if (command.name != name) continue;
    if (command.takes == Takes::nothing && !arguments.empty())
      base::usage_error(base::cat("/", name), "takes no arguments");
    return command.run(desk, arguments);
  }
  unknown(name);
}

namespace {

terminal::Completion complete(std::string_view before) {
  if (!before.starts_with('/') || before.find('\n') != std::string_view::npos) return {};
  const std::size_t space = before.find(' ');
  std::vector<std::string> names;
  if (space == std::string_view::npos) {
    for (const ChatCommand& command : kCommands)
      if (!command.help.empty()) names.push_back(base::cat("/", command.name));
    return {0, terminal::matching(names, before), true};
  }
  const std::size_t start = std::min(before.find_first_not_of(' ', space), before.size());
  const std::string_view name = before.substr(1, space - 1), rest = before.substr(start);
  for (const ChatCommand& command : kCommands) {
    if (command.name != name) continue;
    if (command.takes == Takes::path) return {start, terminal::matching_paths(rest), false};
    if (rest.find(' ') != std::string_view::npos) return {};
    if (command.takes == Takes::setting) return {start, terminal::matching(SettingsBook::names(), rest), true};
    std::string_view words = command.words;
    while (!words.empty()) {
      const auto [word, left] = first_word(words);
      names.emplace_back(word);
      words = left;
    }
    return {start, terminal::matching(names, rest), false};
  }
  return {};
}

}  // namespace

terminal::Completer command_completer() {
  return complete;
}

}  // namespace quern::tool
