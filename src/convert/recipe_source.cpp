#include "convert/recipe_source.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "convert/glob.hpp"
#include "convert/recipe_data.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;

constexpr std::size_t kMaxArchitectureBytes = 100;  // it is put into every name of the recipe

// {arch} in a recipe's texts is the architecture's prefix in GGUF keys.
Json with_architecture(const Json& value, const std::string& architecture) {
  if (value.is_string()) return replaced(value.get<std::string>(), "{arch}", architecture);
  if (!value.is_structured()) return value;
  Json copy = value;
  for (auto& element : copy) element = with_architecture(element, architecture);
  return copy;
}

std::string architecture_prefix(const Json& config) {
  const Json* name = find_path(config, "general.architecture");
  if (name == nullptr || !name->is_string()) return {};
  std::string text = name->get<std::string>();
  const bool plain =
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
      std::string::npos;
  return plain && text.size() <= kMaxArchitectureBytes ? text : std::string();
}

// The configuration's value; the recipe's default only for a key that the configuration does not have at all
// (null is a value: no window, no soft cap).
const Json* value_at(const Source& source, std::string_view path) {
  if (const Json* found = find_path(source.config, path)) return found;
  const bool has_key = source.config.contains(std::string(path.substr(0, path.find('.'))));
  return has_key ? nullptr : find_path(source.defaults, path);
}

}  // namespace

void open_source(const Recipe& recipe, std::string_view config_json, std::string_view where,
                 checkpoint::SourceKind kind, Source& out) {
  const char* key = kind == checkpoint::SourceKind::gguf ? "gguf" : "hf";
  out.where = std::string(where);
  out.place = cat("recipe ", recipe.name, ": sources.", key);
  out.config = base::parse_json(config_json, where);
  if (!out.config.is_object()) base::reject(where, "the configuration is not an object");
  if (!recipe.treated_as.empty()) out.config["architectures"] = Json::array({recipe.treated_as});
  if (!recipe.document["sources"].contains(key))
    base::reject(where, cat("recipe ", recipe.name, " does not read ",
                            kind == checkpoint::SourceKind::gguf ? "GGUF files"
                                                                 : "Hugging Face directories"));
  // Models of several kinds of input keep the configuration of their text part in one of these.
  if (recipe.document["sources"][key].contains("inside"))
    for (const Json& name : recipe.document["sources"][key]["inside"])
      if (const auto part = out.config.find(name.get<std::string>());
          part != out.config.end() && part->is_object()) {
        const Json inner = *part;
        out.config.erase(part);
        out.config = merged(std::move(out.config), inner);
      }
  out.section = with_architecture(recipe.document["sources"][key], architecture_prefix(out.config));
  out.activations = data_file("_neutral")["activations"];
  out.defaults = out.section.contains("defaults") ? out.section["defaults"] : Json::object();
  out.of_config.find = [&out](std::string_view path) { return value_at(out, path); };
  out.of_config.activations = &out.activations;
}

std::vector<std::string> unknown_keys(const Source& source, checkpoint::SourceKind kind) {
  std::vector<std::string> paths = paths_in(source.section["values"], source.place);
  for (const Json& rule : source.section["refuse_unless"])
    for (std::string& path : paths_in(rule["value"], source.place))
      paths.push_back(std::move(path));
  if (source.section.contains("notices"))
    for (const Json& notice : source.section["notices"])
      for (std::string& path : paths_in(notice["when"], source.place)) paths.push_back(std::move(path));
  std::vector<std::string> patterns = source.section["ignore_keys"].get<std::vector<std::string>>();
  const Json common = data_file("_neutral")["ignore_keys"];
  for (const Json& pattern : common[kind == checkpoint::SourceKind::gguf ? "gguf" : "hf"])
    patterns.push_back(pattern.get<std::string>());
  std::vector<std::string> unknown;
  for (const auto& [name, value] : source.config.items()) {
    const std::string& key = name;
    const bool read = std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
      return path == key || path.compare(0, key.size() + 1, key + ".") == 0;
    });
    const bool listed =
        std::any_of(patterns.begin(), patterns.end(),
                    [&](const std::string& pattern) { return glob_match(pattern, key); });
    if (!read && !listed) unknown.push_back(base::printable(key, 80));
  }
  return unknown;
}

}  // namespace quern::convert
