#include "convert/task_recipe.hpp"

#include <algorithm>

#include "convert/recipe_data.hpp"

namespace quern::convert {

namespace {

using base::Json;

const Recipe* family_of(const std::vector<Recipe>& recipes, std::string_view model_type, const Json& kind) {
  for (const Recipe& recipe : recipes) {
    const auto& names = recipe.hf_names;
    if (std::find(names.begin(), names.end(), model_type) == names.end()) continue;
    const Json& contract = recipe.document["contract"];
    const bool same = contract.contains("kind") && contract["kind"] == kind;
    return same && recipe.document["sources"].contains("hf") ? &recipe : nullptr;
  }
  return nullptr;
}

// The language model's matrix and bias; what stands between it and the last norm stays.
bool is_of_head(std::string_view canonical) {
  return canonical.starts_with("head.") && !canonical.starts_with("head.transform.");
}

Json with_tensors(const Json& recipe, const Json& task) {
  Json tensors = Json::object();
  for (const auto& [canonical, rule] : recipe.items())
    if (!is_of_head(canonical)) tensors[canonical] = rule;
  for (const auto& [canonical, rule] : task.items()) tensors[canonical] = rule;
  return tensors;
}

Recipe changed(Recipe recipe, const Json& task) {
  Json& section = recipe.document["sources"]["hf"];
  section["values"] = merged(section["values"], task["values"]);
  section["tensors"] = with_tensors(section["tensors"], task["tensors"]);
  if (task.contains("prefixes"))
    section["prefixes"].insert(section["prefixes"].end(), task["prefixes"].begin(), task["prefixes"].end());
  Json& head = recipe.document["contract"]["head"];
  head = merged(head, task["head"]);
  return recipe;
}

}  // namespace

std::optional<Recipe> task_recipe(const std::vector<Recipe>& recipes, std::string_view class_name,
                                  std::string_view model_type) {
  const Json document = data_file("_tasks");
  for (const Json& task : document["tasks"]) {
    if (!class_name.ends_with(task["ending"].get<std::string>())) continue;
    if (const Recipe* recipe = family_of(recipes, model_type, task["kind"])) return changed(*recipe, task);
  }
  return std::nullopt;
}

}  // namespace quern::convert
