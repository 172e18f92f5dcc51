#include "arguments.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "command_options.hpp"
#include "environment.hpp"

namespace quern::tool {

namespace {

constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-ub", "--ubatch-size"},
    {"-sys", "--system-prompt"},
    {"-sysf", "--system-prompt-file"},
    {"-st", "--single-turn"},
    {"-mli", "--multiline-input"},
    {"-co", "--color"},
    {"-rea", "--reasoning"},
    {"-no-cnv", "--no-conversation"},
    {"-cnv", "--conversation"},
    {"-pg", "--prompt-gen"},
    {"-npl", "--n-parallel"},
    {"-oe", "--output-err"},
    {"-tb", "--threads-batch"},
    {"-jf", "--json-schema-file"},
    {"-md", "--model-draft"},
    {"-np", "--parallel"},
};

// ", did you mean --threads?" for an option that the command does not have.
std::string suggestion(const CLI::App& app) {
  for (const std::string& word : app.remaining()) {
    if (!word.starts_with("-") || word.size() < 3) continue;
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& [alias, name] : kAliases)
      if (app.get_option_no_throw(std::string(name)) != nullptr) names.emplace_back(alias);
    const std::string near = base::nearest(std::string_view(word).substr(0, word.find('=')), {names.begin(), names.end()});
    if (!near.empty()) return base::cat(", did you mean ", near, "?");
  }
  return {};
}

// CLI11 says of a word that is no number that it is not in range.
std::string without_false_ranges(std::string text) {
  const std::size_t range = text.find(" not in range"), value = text.rfind("Value ", range);
  if (range == std::string::npos || value == std::string::npos) return text;
  const std::string word = text.substr(value + 6, range - value - 6);
  char* end = nullptr;
  std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0') text.replace(range, 13, " is not a number in");
  return text;
}
// What parse_arguments() does instead of parsing while visit_options() runs.
const std::function<void(CLI::App&)>* g_visit = nullptr;

}  // namespace

void visit_options(CommandFunction command, const std::function<void(CLI::App&)>& visit) {
  struct Reset {
    ~Reset() { g_visit = nullptr; }
  } reset;
  g_visit = &visit;
  command({});
}

std::vector<std::string> aliases_of(const std::string& long_name) {
  std::vector<std::string> aliases;
  for (const auto& [alias, name] : kAliases)
    if (name == long_name) aliases.emplace_back(alias);
  return aliases;
}

std::vector<std::string> expand_aliases(const std::vector<std::string>& arguments) {
  std::vector<std::string> expanded;
  for (const std::string& argument : arguments) {
    const auto found = std::find_if(std::begin(kAliases), std::end(kAliases),
                                    [&](const auto& alias) { return alias.first == argument; });
    expanded.emplace_back(found == std::end(kAliases) ? std::string_view(argument) : found->second);
  }
  return expanded;
}

CLI::Validator finite_range(double low, double high) {
  const std::string range = base::cat("number in [", low, ", ", high, "]");
  return CLI::Validator(
      [=](const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool inside = !text.empty() && *end == '\0' && value >= low && value <= high;
        return inside ? std::string() : base::cat("\"", base::printable(text, 40), "\" is not a ", range);
      },
      range);
}

bool parse_arguments(CLI::App& app, const std::vector<std::string>& arguments) {
  name_environment(app);
  if (g_visit != nullptr) {
    (*g_visit)(app);
    return true;
  }
  const std::vector<std::string> words = expand_aliases(arguments);
  std::vector<std::string> reversed = words;
  std::reverse(reversed.begin(), reversed.end());  // CLI11 takes a vector from the back
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return true;
  } catch (const CLI::ParseError& error) {
    const bool unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    std::string text = without_false_ranges(error.what()) + (unknown ? suggestion(app) : "");
    std::replace(text.begin(), text.end(), '\n', ' ');
    base::usage_error(app.get_name(), base::cat(text, blamed_environment(app, words, text), " (", app.get_name(), " --help lists the options)"));
  }
  return false;
}

}  // namespace quern::tool
