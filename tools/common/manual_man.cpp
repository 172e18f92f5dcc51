// troff in the man macros, and Markdown.

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "manual.hpp"

namespace quern::tool {

namespace {

// Text for troff: backslashes and dashes are themselves, and no line begins a request.
std::string roff(const std::string& text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else out += c;
    line_start = c == '\n';
  }
  return out;
}

std::string names_of(const OptionText& option, const char* open, const char* close, bool as_roff) {
  std::string out;
  const auto shown = [&](const std::string& text) { return as_roff ? roff(text) : text; };
  for (const std::string& name : option.names) out += (out.empty() ? "" : ", ") + (open + shown(name) + close);
  if (option.names.empty()) out = open + shown(option.positional) + close;
  return out;
}

std::string title(const CommandText& command, const ProgramText& program) {
  std::string name = command.full_name('-');
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return base::cat(".TH ", roff(name), " 1 \"\" \"", program.name, " ", program.version, "\" \"User Commands\"\n");
}

std::string synopsis(const CommandText& command) {
  std::string out = ".SH SYNOPSIS\n.B " + roff(command.full_name(' ')) + "\n[\\fIOPTIONS\\fR]";
  for (const OptionText& option : command.options)
    if (option.names.empty()) out += option.required ? " \\fI" + roff(option.positional) + "\\fR" : " [\\fI" + roff(option.positional) + "\\fR]";
  return out + "\n";
}

std::string man_option(const OptionText& option) {
  std::string out = ".TP\n" + names_of(option, "\\fB", "\\fR", true);
  if (!option.names.empty() && !option.value.empty()) out += " \\fI" + roff(option.value) + "\\fR";
  out += "\n" + roff(option.help);
  if (!option.choices.empty()) {
    std::string words;
    for (const std::string& choice : option.choices) words += (words.empty() ? "" : ", ") + choice;
    out += "\nOne of " + roff(words) + ".";
  }
  if (option.required) out += "\nRequired.";
  if (!option.environment.empty()) out += "\nEnvironment: \\fB" + roff(option.environment) + "\\fR.";
  return out + "\n";
}

constexpr const char* kTail =
    ".SH ENVIRONMENT\n"
    "Options that the command line leaves out come from the \\fBQUERN_ARG_*\\fR variables named with them, then from the "
    "configuration file.\n"
    ".TP\n\\fBQUERN_CONFIG\\fR\nThe configuration file; empty: none.\n"
    ".TP\n\\fBQUERN_ISA\\fR\nThe instruction set, where \\fB\\-\\-isa\\fR does not name one.\n"
    ".SH FILES\n.TP\n\\fI~/.config/quern/config.toml\\fR\nDefaults of options, a section per command.\n"
    ".SH EXIT STATUS\n0 done, 1 some items or a check failed, 2 usage, 3 input rejected, 4 environment, 70 internal. A signal that "
    "ended it is raised again.\n";

// What `whatis` shows: one line, to the end of the first sentence or clause.
std::string first_sentence(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  for (const std::string_view end : {". ", "; ", ": "}) text = text.substr(0, text.find(end));
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

std::string man_page(const CommandText& command, const ProgramText& program) {
  std::string out = title(command, program);
  out += ".SH NAME\n" + roff(command.full_name('-')) + " \\- " + roff(first_sentence(command.help)) + "\n";
  out += synopsis(command) + ".SH DESCRIPTION\n" + roff(command.help) + "\n.SH OPTIONS\n";
  for (const OptionText& option : command.options) out += man_option(option);
  if (!command.footer.empty()) out += ".SH NOTES\n.nf\n" + roff(command.footer) + "\n.fi\n";
  out += kTail;
  if (!command.name.empty()) out += ".SH SEE ALSO\n\\fB" + roff(program.name) + "\\fR(1)\n";
  return out;
}

std::string man_overview(const ProgramText& program) {
  CommandText whole;
  whole.program = program.name;
  std::string out = title(whole, program);
  out += ".SH NAME\n" + roff(program.name) + " \\- " + roff(program.help) + "\n";
  out += ".SH SYNOPSIS\n.B " + roff(program.name) + "\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH COMMANDS\n";
  for (const CommandText& command : program.commands)
    out += ".TP\n\\fB" + roff(command.full_name('-')) + "\\fR(1)\n" + roff(command.help) + "\n";
  return out + kTail;
}

std::string markdown_page(const CommandText& command) {
  std::string out = "# " + command.full_name(' ') + "\n\n" + command.help + "\n\n| option | |\n| --- | --- |\n";
  for (const OptionText& option : command.options) {
    std::string help = option.help;
    for (std::size_t at = 0; (at = help.find('|', at)) != std::string::npos; at += 2) help.insert(at, "\\");
    out += "| " + names_of(option, "`", "`", false);
    if (!option.names.empty() && !option.value.empty()) out += " " + option.value;
    out += " | " + help + (option.environment.empty() ? "" : " (`" + option.environment + "`)") + " |\n";
  }
  return out + (command.footer.empty() ? "" : "\n```\n" + command.footer + "\n```\n");
}

ManualFormat parse_manual_format(const std::string& word) {
  constexpr std::pair<std::string_view, ManualFormat> kFormats[] = {{"man", ManualFormat::man},
                                                                    {"markdown", ManualFormat::markdown},
                                                                    {"bash", ManualFormat::bash},
                                                                    {"zsh", ManualFormat::zsh},
                                                                    {"fish", ManualFormat::fish}};
  for (const auto& [name, format] : kFormats)
    if (name == word) return format;
  base::usage_error("--format", base::cat("unknown format (got \"", base::printable(word, 40),
                                          "\", expected man, markdown, bash, zsh or fish)"));
}

}  // namespace quern::tool
