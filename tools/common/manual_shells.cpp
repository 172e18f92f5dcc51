// Completions: bash, zsh and fish. Each offers the commands, then the options of the command on the line, then what an
// option's value may be: its choices, or files.

#include <algorithm>

#include "base/strings.hpp"
#include "manual.hpp"

namespace quern::tool {

namespace {

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

// A word in single quotes for bash, zsh and (with its own escape) fish.
std::string quoted(const std::string& text, const char* quote) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string(quote) : c == '\n' ? std::string(" ") : std::string(1, c);
  return out + "'";
}

std::string sh(const std::string& text) { return quoted(text, "'\\''"); }

std::string function_name(const std::string& program) {
  std::string out = "_" + program;
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

std::string command_words(const ProgramText& program) {
  std::vector<std::string> words;
  for (const CommandText& command : program.commands)
    if (!command.name.empty()) words.push_back(command.name);
  return joined(words, " ");
}

// The value of the option before the cursor: `words` sets the candidates, `files` completes paths.
std::string bash_values(const CommandText& command, const std::string& indent) {
  std::string out;
  for (const OptionText& option : command.options) {
    if (option.names.empty() || option.value.empty()) continue;
    out += indent + joined(option.names, "|") + ") ";
    if (!option.choices.empty()) out += "words=" + sh(joined(option.choices, " "));
    else out += option.takes_path ? "files=1" : "words=";
    out += "; value=1 ;;\n";
  }
  return out;
}

std::string bash_case(const CommandText& command) {
  std::vector<std::string> names;
  bool paths = false;
  for (const OptionText& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
    paths = paths || (option.names.empty() && option.takes_path);
  }
  const std::string indent = "        ";
  std::string out = "    " + (command.name.empty() ? std::string("*") : command.name) + ")\n      case \"$prev\" in\n";
  out += bash_values(command, indent) + "      esac\n";
  out += "      if [ -z \"$value\" ]; then words=" + sh(joined(names, " ")) + (paths ? "; files=1" : "") + "; fi ;;\n";
  return out;
}

// zsh reads colons and brackets of a description.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_arguments(const CommandText& command) {
  std::string out = "      _arguments";
  for (const OptionText& option : command.options) {
    std::string action;
    if (!option.value.empty()) action = ":" + zsh_text(option.value) + ":";
    if (!option.choices.empty()) action += "(" + joined(option.choices, " ") + ")";
    else if (option.takes_path) action += "_files";
    if (option.names.empty()) out += " \\\n        " + sh("*" + action);
    for (const std::string& name : option.names) {
      const bool has_long = name.rfind("--", 0) == 0;
      out += " \\\n        " + sh("*" + name + (has_long && !option.value.empty() ? "=" : "") + "[" + zsh_text(option.help) + "]" + action);
    }
  }
  return out;
}

std::string fish_quoted(const std::string& text) { return quoted(text, "\\'"); }

std::string fish_options(const ProgramText& program, const CommandText& command) {
  std::string out;
  const std::string head =
      "complete -c " + program.name +
      (command.name.empty() ? "" : " -n " + fish_quoted("__fish_seen_subcommand_from " + command.name));
  for (const OptionText& option : command.options) {
    if (option.names.empty()) continue;
    std::string line = head;
    for (const std::string& name : option.names)
      line += name.rfind("--", 0) == 0 ? " -l " + name.substr(2) : name.size() == 2 ? " -s " + name.substr(1) : " -o " + name.substr(1);
    if (!option.value.empty()) line += option.takes_path ? " -r -F" : " -x";
    if (!option.choices.empty()) line += " -a " + fish_quoted(joined(option.choices, " "));
    std::string help;
    for (const char c : option.help) help += c == '\\' ? std::string("\\\\") : std::string(1, c);
    out += line + " -d " + fish_quoted(help) + "\n";
  }
  return out;
}

}  // namespace

std::string bash_completion(const ProgramText& program) {
  const std::string name = function_name(program.name), commands = command_words(program);
  std::string out = "# bash completion of " + program.name + ", made from its option tables\n" + name +
                    "() {\n  local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
                    "  local words= files= value=\n  COMPREPLY=()\n";
  if (!commands.empty())
    out += "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W " + sh(commands + " help --help --version") +
           " -- \"$cur\"))\n    return\n  fi\n";
  out += "  case \"${COMP_WORDS[1]}\" in\n";
  for (const CommandText& command : program.commands) out += bash_case(command);
  if (!commands.empty()) out += "    help) words=" + sh(commands) + " ;;\n";
  out += "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  if [ -n \"$files\" ]; then\n    compopt -o filenames 2>/dev/null\n"
         "    COMPREPLY+=($(compgen -f -- \"$cur\"))\n  fi\n}\n";
  return out + "complete -F " + name + " " + program.name + "\n";
}

std::string zsh_completion(const ProgramText& program) {
  const std::string name = function_name(program.name);
  std::string out = "#compdef " + program.name + "\n# made from its option tables\n" + name + "() {\n";
  if (command_words(program).empty()) {
    out += zsh_arguments(program.commands.front()) + "\n}\n";
  } else {
    out += "  local -a commands\n  commands=(\n";
    for (const CommandText& command : program.commands) {
      const std::string help = command.help.substr(0, command.help.find('\n'));
      out += "    " + sh(command.name + ":" + zsh_text(help)) + "\n";
    }
    out += "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
           "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n";
    for (const CommandText& command : program.commands)
      out += "    " + command.name + ")\n" + zsh_arguments(command) + "\n      ;;\n";
    out += "  esac\n}\n";
  }
  return out + name + " \"$@\"\n";
}

std::string fish_completion(const ProgramText& program) {
  std::string out = "# fish completion of " + program.name + ", made from its option tables\n";
  const std::string commands = command_words(program);
  if (!commands.empty()) out += "complete -c " + program.name + " -f\n";
  for (const CommandText& command : program.commands) {
    if (!command.name.empty())
      out += "complete -c " + program.name + " -n __fish_use_subcommand -a " + command.name + " -d " +
             fish_quoted(command.help.substr(0, command.help.find('\n'))) + "\n";
    out += fish_options(program, command);
  }
  return out;
}

}  // namespace quern::tool
