#include "environment.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <memory>
#include <string_view>

#include "base/strings.hpp"

namespace quern::tool {

namespace {

// Where llama.cpp's word is not its option's name (its common/arg.cpp).
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"batch-size", "BATCH"},        {"ubatch-size", "UBATCH"},     {"predict", "N_PREDICT"},
    {"parallel", "N_PARALLEL"},     {"temp", "TEMPERATURE"},       {"reasoning-budget", "THINK_BUDGET"},
    {"draft", "SPEC_DRAFT_MODEL"},  {"draft-max", "SPEC_DRAFT_N_MAX"},
};

// CLI11 puts the variable beside the option's name, where it pushes every description into a second line.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_opts(option), variable = " (Env:" + option->get_envname() + ")";
    const std::size_t at = option->get_envname().empty() ? std::string::npos : text.find(variable);
    return at == std::string::npos ? text : text.substr(0, at) + text.substr(at + variable.size());
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string& variable = option->get_envname();
    return option->get_description() + (variable.empty() ? "" : " [" + variable + "]");
  }
};

std::map<std::string, std::string>& origins() {
  static std::map<std::string, std::string> places;
  return places;
}

bool has_name(const CLI::Option& option, const std::string& word) {
  const auto equal = [&](const char* dashes) {
    return [&word, dashes](const std::string& name) {
      const std::string full = dashes + name;
      return word == full || word.rfind(full + "=", 0) == 0;
    };
  };
  const auto& longs = option.get_lnames();
  const auto& shorts = option.get_snames();
  return std::any_of(longs.begin(), longs.end(), equal("--")) ||
         std::any_of(shorts.begin(), shorts.end(), [&](const std::string& name) { return word.rfind("-" + name, 0) == 0; });
}

}  // namespace

std::string environment_name(const CLI::Option& option) {
  const std::vector<std::string>& names = option.get_lnames();
  if (names.empty() || option.get_group().empty() || names.front() == "help" || names.front() == "version") return {};
  std::string word;
  for (const auto& [name, special] : kWords)
    if (std::find(names.begin(), names.end(), name) != names.end()) word = special;
  if (word.empty())
    for (const char c : names.front())
      word += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return "QUERN_ARG_" + word;
}

void name_environment(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>());
  for (CLI::Option* option : app.get_options()) {
    const std::string name = environment_name(*option);
    if (!name.empty()) option->envname(name);
  }
}

void set_environment_origin(const std::string& name, const std::string& place) {
  origins()[name] = place;
}

std::string blamed_environment(const CLI::App& app, const std::vector<std::string>& arguments, const std::string& text) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_envname();
    const char* value = name.empty() ? nullptr : std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') continue;
    const bool typed = std::any_of(arguments.begin(), arguments.end(),
                                   [&](const std::string& word) { return has_name(*option, word); });
    const auto named = [&](const std::string& lname) { return text.find("--" + lname) != std::string::npos; };
    if (typed || !std::any_of(option->get_lnames().begin(), option->get_lnames().end(), named)) continue;
    const auto place = origins().find(name);
    return base::cat(" (from ", place == origins().end() ? name : place->second, ")");
  }
  return {};
}

}  // namespace quern::tool
