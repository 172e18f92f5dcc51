#include "option_table.hpp"

#include <algorithm>

#include "command_options.hpp"

namespace quern::tool {

namespace {

// CLI11 puts what a validator allows behind the type: "TEXT:{md,json}", "N:INT in [1 - 8]".
void read_type(const std::string& type, OptionText& out) {
  out.value = type.substr(0, type.find_first_of(":{ "));
  if (out.value.empty()) out.value = "VALUE";
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return;
  for (std::size_t at = open + 1; at < close;) {
    const std::size_t comma = std::min(type.find(',', at), close);
    out.choices.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool takes_path(const OptionText& option) {
  const auto is = [&](std::string_view word) { return option.value == word || option.positional == word; };
  if (is("PATH") || is("FILE") || is("DIR") || is("PROGRAM") || is("SRC") || is("OUT")) return true;
  return std::any_of(option.names.begin(), option.names.end(), [](const std::string& name) {
    return ends_with(name, "file") || name == "--output" || name == "--prompt-cache" || name == "--model";
  });
}

OptionText option_text(const CLI::Option& option) {
  OptionText out;
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) {
    for (std::string& alias : aliases_of("--" + name)) out.names.push_back(std::move(alias));
    out.names.push_back("--" + name);
  }
  if (out.names.empty()) out.positional = option.get_name();
  if (option.get_items_expected_max() != 0) read_type(option.get_type_name(), out);
  out.help = option.get_description();
  out.environment = option.get_envname();
  out.required = option.get_required();
  out.takes_path = out.choices.empty() && !out.value.empty() && takes_path(out);
  return out;
}

}  // namespace

CommandText command_text(const CLI::App& app) {
  CommandText text;
  const std::string full = app.get_name();
  const std::size_t space = full.find(' ');
  text.program = full.substr(0, space);
  if (space != std::string::npos) text.name = full.substr(space + 1);
  text.help = app.get_description();
  text.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) text.options.push_back(option_text(*option));
  std::stable_partition(text.options.begin(), text.options.end(), [](const OptionText& o) { return o.names.empty(); });
  return text;
}

}  // namespace quern::tool
