#include "convert/nearest_recipe.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/strings.hpp"
#include "convert/glob.hpp"
#include "convert/recipe_data.hpp"
#include "convert/recipe_source.hpp"
#include "convert/tensor_names.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;

constexpr std::size_t kMaxShown = 5;
constexpr std::size_t kMaxTried = 8;     // recipes equally near
constexpr double kMaxShare = 0.5;        // of names that a near recipe does not know
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

// Every {x} that stands for a number is 0.
std::string with_zeros(std::string pattern) {
  for (std::size_t at = 0; at + 2 < pattern.size(); ++at)
    if (pattern[at] == '{' && pattern[at + 2] == '}') pattern.replace(at, 3, "0");
  return pattern;
}

// Patterns of every name the recipe reads or ignores, as this checkpoint would spell them.
std::vector<std::string> known_patterns(const Source& source, const checkpoint::Checkpoint& checkpoint) {
  const Json& section = source.section;
  std::vector<std::string> names, patterns;
  for (const auto& [canonical, rule] : section["tensors"].items()) collect_names(rule, names);
  for (const Json& entry : section["ignore_tensors"])
    if (!entry.contains("beyond"))  // layers that the model does not have
      collect_names(entry.is_object() && entry.contains("name") ? entry["name"] : entry, names);
  const NameMap map(section, checkpoint, source.place);
  for (const std::string& name : names)
    for (const std::string& spelled : map.spellings(name)) patterns.push_back(in_first_layer(with_zeros(spelled)));
  return patterns;
}

struct Distance {
  std::vector<std::string> keys, tensors;
  double share = 1;  // that is not known
  std::size_t n_patterns = 0;  // tensor names the recipe knows
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
  const std::vector<std::string> patterns = known_patterns(source, checkpoint);
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

// What keeps the recipe from reading the checkpoint, "" when nothing does. Tensors that are left over are told apart.
std::string obstacle(const std::vector<Recipe>& recipes, const Recipe& recipe, const checkpoint::Checkpoint& checkpoint) {
  try {
    const Recipe tried = match_recipe(recipes, checkpoint, recipe.name);
    if (checkpoint.tensors().empty()) resolve_config(tried, checkpoint.config_json(), checkpoint.where());
    else resolve(tried, checkpoint, {});
    return {};
  } catch (const base::Error& error) {
    const std::string text = error.what(), place = cat(checkpoint.where(), ": ");
    return text.starts_with(place) ? text.substr(place.size()) : text;
  }
}

std::string difference(const Distance& nearest, const std::string& obstacle) {
  std::string unknown;
  if (!nearest.keys.empty()) unknown = cat("configuration keys ", shown(nearest.keys));
  if (!nearest.tensors.empty()) unknown += cat(unknown.empty() ? "" : "; ", "tensors ", shown(nearest.tensors));
  if (unknown.empty() && obstacle.empty()) return " (it knows every key and tensor)";
  const bool left_over = obstacle.find("are neither used nor on") != std::string::npos;
  std::string text = unknown.empty() ? "" : cat("unknown to it: ", unknown);
  if (!obstacle.empty() && !(left_over && !nearest.tensors.empty()))
    text += cat(text.empty() ? "" : "; ", "by it: ", obstacle);
  return cat(" (", text, ")");
}

struct Candidate {
  const Recipe* recipe;
  Distance distance;
};

// The nearest first. Of equals the one that knows the fewest other things, and the one that others are changes of.
std::vector<Candidate> ranked(const std::vector<Recipe>& recipes, const checkpoint::Checkpoint& checkpoint) {
  const bool gguf = checkpoint.kind() == checkpoint::SourceKind::gguf;
  std::set<std::string> names;
  for (const checkpoint::SourceTensor& tensor : checkpoint.tensors())
    if (names.size() < kMaxShapes) names.insert(in_first_layer(tensor.name));
  std::vector<Candidate> candidates;
  for (const Recipe& recipe : recipes)
    if (recipe.document["sources"].contains(gguf ? "gguf" : "hf"))
      candidates.push_back({&recipe, distance(recipe, checkpoint, names)});
  const auto rank = [](const Candidate& c) {
    return std::tuple(c.distance.share, c.distance.n_patterns, c.recipe->document.contains("extends"));
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
  return candidates;
}

}  // namespace

std::string describe_nearest(const std::vector<Recipe>& recipes, const checkpoint::Checkpoint& checkpoint) {
  std::vector<Candidate> candidates = ranked(recipes, checkpoint);
  if (candidates.empty() || candidates.front().distance.share > kMaxShare) return {};
  const double share = candidates.front().distance.share;
  const auto end = std::find_if(candidates.begin(), candidates.end(),
                                [&](const Candidate& c) { return c.distance.share > share; });
  candidates.resize(std::min(kMaxTried, static_cast<std::size_t>(end - candidates.begin())), candidates.front());
  // The first of equals unless it would fail where another does not.
  const Candidate* best = &candidates.front();
  std::string failure = obstacle(recipes, *best->recipe, checkpoint);
  for (std::size_t i = 1; i < candidates.size() && !failure.empty(); ++i)
    if (obstacle(recipes, *candidates[i].recipe, checkpoint).empty()) {
      best = &candidates[i];
      failure.clear();
    }
  return cat(best->recipe->name, difference(best->distance, failure));
}

}  // namespace quern::convert
