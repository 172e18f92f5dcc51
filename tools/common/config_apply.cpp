#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "config_file.hpp"
#include "environment.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

struct Found {
  std::filesystem::path path;
  bool asked_for = false;  // by QUERN_CONFIG: then it must be there
};

Found config_path() {
  if (const char* named = std::getenv("QUERN_CONFIG")) return {named, *named != '\0'};
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config == '/') return {std::filesystem::path(config) / "quern" / "config.toml", false};
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return {std::filesystem::path(home) / ".config" / "quern" / "config.toml", false};
}

// Long name -> name in the environment, of the options of a command.
std::vector<std::pair<std::string, std::string>> keys_of(CommandFunction command) {
  std::vector<std::pair<std::string, std::string>> keys;
  visit_options(command, [&](CLI::App& app) {
    for (const CLI::Option* option : app.get_options())
      if (!option->get_envname().empty())
        for (const std::string& name : option->get_lnames()) keys.emplace_back(name, option->get_envname());
  });
  return keys;
}

const std::string* find_key(const std::vector<std::pair<std::string, std::string>>& keys, const std::string& key) {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const auto& pair) { return pair.first == key; });
  return found == keys.end() ? nullptr : &found->second;
}

[[noreturn]] void unknown(const std::string& place, const char* what, const std::string& got,
                          const std::vector<std::string_view>& known) {
  const std::string near = base::nearest(got, known);
  base::reject(place, what, got, near.empty() ? base::join(known) : base::cat("perhaps ", near));
}

std::vector<std::string_view> names_of(const std::vector<std::pair<std::string, std::string>>& keys) {
  std::vector<std::string_view> names;
  for (const auto& [key, variable] : keys) names.push_back(key);
  return names;
}

struct Applier {
  const ConfigScope& scope;
  const std::string& running;
  std::string where;
  std::vector<std::pair<std::string, std::string>> keys = {};  // of the running command
  std::set<std::string> set = {};  // variables that a section has set: it beats what stands above the first

  void check_section(const ConfigEntry& entry, const std::string& place) const {
    const auto is = [&](const auto& name) { return name == entry.section; };
    const bool ours = std::any_of(scope.commands.begin(), scope.commands.end(),
                                  [&](const ConfigCommand& command) { return is(command.name); });
    if (entry.section.empty() || ours || scope.foreign.empty()) return;
    if (std::any_of(scope.foreign.begin(), scope.foreign.end(), is)) return;
    std::vector<std::string_view> known(scope.foreign.begin(), scope.foreign.end());
    for (const ConfigCommand& command : scope.commands) known.push_back(command.name);
    unknown(place, "unknown section", entry.section, known);
  }

  // A key above the first section may belong to another command only.
  void check_common(const ConfigEntry& entry, const std::string& place) const {
    for (const ConfigCommand& command : scope.commands)
      if (find_key(keys_of(command.run), entry.key) != nullptr) return;
    unknown(place, "no command has such an option", entry.key, names_of(keys));
  }

  void apply(const ConfigEntry& entry) {
    const std::string place = base::cat(where, ":", entry.line);
    check_section(entry, place);
    if (entry.section.empty() ? !scope.common : entry.section != running) return;
    const std::string* variable = find_key(keys, entry.key);
    if (variable == nullptr && entry.section.empty()) return check_common(entry, place);
    if (variable == nullptr) unknown(place, "unknown key", entry.key, names_of(keys));
    const char* said = std::getenv(variable->c_str());
    const bool by_file = set.contains(*variable);
    if (said != nullptr && *said != '\0' && !by_file) return;
    if (by_file && entry.section.empty()) return;
    ::setenv(variable->c_str(), entry.value.c_str(), 1);
    set_environment_origin(*variable, place);
    set.insert(*variable);
  }
};

}  // namespace

void apply_config(const ConfigScope& scope, const std::string& running) {
  const Found found = config_path();
  std::error_code error;
  if (found.path.empty() || (!found.asked_for && !std::filesystem::exists(found.path, error))) return;
  Applier applier{scope, running, base::printable(found.path.string())};
  const std::vector<ConfigEntry> entries =
      parse_config(base::read_text_file(found.path, kMaxFileBytes), applier.where);
  if (entries.empty()) return;
  for (const ConfigCommand& command : scope.commands)
    if (command.name == running) applier.keys = keys_of(command.run);
  for (const ConfigEntry& entry : entries) applier.apply(entry);
}

}  // namespace quern::tool
