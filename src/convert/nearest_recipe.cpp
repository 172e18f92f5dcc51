#include "convert/nearest_recipe.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/strings.hpp"
#include "convert/glob.hpp"
#include "convert/recipe_data.hpp"
#include "convert/recipe_source.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;

constexpr std::size_t kMaxShown = 5;
constexpr std::size_t kMaxShapes = 512;  // distinct tensor names that are compared

// "model.layers.12.mlp.up_proj.weight" -> "model.layers.0.mlp.up_proj.weight": one name per kind.
std::string in_first_layer(const std::string& name) {
  std::string result;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    const std::string part = name.substr(at, end - at);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    result += number ? "0" : part;
    if (end < name.size()) result += '.';
    at = end + 1;
  }
  return result;
}

void collect_names(const Json& rule, std::vector<std::string>& names) {
  if (rule.is_string()) names.push_back(rule.get<std::string>());
  if (rule.is_array())
    for (const Json& element : rule) collect_names(element, names);
  if (rule.is_object() && rule.contains("from")) collect_names(rule["from"], names);
}

// Patterns of every name the recipe reads or ignores; a prefix is any text.
std::vector<std::string> known_patterns(const Json& section) {
  std::vector<std::string> patterns;
  for (const auto& [canonical, rule] : section["tensors"].items()) collect_names(rule, patterns);
  for (const Json& entry : section["ignore_tensors"])
    collect_names(entry.is_object() && entry.contains("name") ? entry["name"] : entry, patterns);
  for (std::string& pattern : patterns) {
    pattern = replaced(pattern, "{p}", "*");
    for (const char* place : {"{l}", "{b}", "{e}", "{i}"}) pattern = replaced(pattern, place, "0");
  }
  return patterns;
}

struct Distance {
  std::vector<std::string> keys, tensors;
  double share = 1;  // that is not known
  std::size_t n_patterns = 0;  // tensor names the recipe knows
  bool change = false;         // of another recipe
};

double share_of(std::size_t part, std::size_t all) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::size_t>(all, 1));
}

Distance distance(const Recipe& recipe, const checkpoint::Checkpoint& checkpoint,
                  const std::set<std::string>& names) {
  Source source;
  open_source(recipe, checkpoint.config_json(), checkpoint.where(), checkpoint.kind(), source);
  Distance result;
  result.keys = unknown_keys(source, checkpoint.kind());
  const std::vector<std::string> patterns = known_patterns(source.section);
  result.n_patterns = patterns.size();
  for (const std::string& name : names)
    if (std::none_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return glob_match(pattern, name); }))
      result.tensors.push_back(name);
  // Keys have the same names in many families; tensors tell more, so they count twice.
  const double keys = share_of(result.keys.size(), source.config.size());
  const double tensors = share_of(result.tensors.size(), names.size());
  result.share = names.empty() ? keys : std::max(tensors, (keys + 2 * tensors) / 3);
  return result;
}

std::string shown(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), kMaxShown); ++i)
    text += cat(i == 0 ? "" : ", ", base::printable(words[i], 80));
  if (words.size() > kMaxShown) text += cat(", ... (", words.size() - kMaxShown, " more)");
  return text;
}

}  // namespace

std::string describe_nearest(const std::vector<Recipe>& recipes,
                             const checkpoint::Checkpoint& checkpoint) {
  const bool gguf = checkpoint.kind() == checkpoint::SourceKind::gguf;
  std::set<std::string> names;
  for (const checkpoint::SourceTensor& tensor : checkpoint.tensors())
    if (names.size() < kMaxShapes) names.insert(in_first_layer(tensor.name));
  const Recipe* best = nullptr;
  Distance nearest;
  for (const Recipe& recipe : recipes) {
    if (!recipe.document["sources"].contains(gguf ? "gguf" : "hf")) continue;
    Distance candidate = distance(recipe, checkpoint, names);
    // Of equals the one that knows the fewest other things, and the one that others are changes of.
    candidate.change = recipe.document.contains("extends");
    const auto rank = [](const Distance& d) { return std::tuple(d.share, d.n_patterns, d.change); };
    if (best != nullptr && rank(candidate) >= rank(nearest)) continue;
    best = &recipe;
    nearest = std::move(candidate);
  }
  if (best == nullptr || nearest.share > 0.5) return {};
  std::string unknown;
  if (!nearest.keys.empty()) unknown = cat("configuration keys ", shown(nearest.keys));
  if (!nearest.tensors.empty())
    unknown += cat(unknown.empty() ? "" : "; ", "tensors ", shown(nearest.tensors));
  return cat(best->name, unknown.empty() ? " (it knows every key and tensor)"
                                         : cat(" (unknown to it: ", unknown, ")"));
}

}  // namespace quern::convert
