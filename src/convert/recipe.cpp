#include "convert/recipe.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "convert/expression.hpp"
#include "convert/recipe_data.hpp"
#include "convert/recipe_table.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;
using base::JsonObject;

constexpr std::size_t kMaxParents = 8;

// Data files of models/ that are no recipes begin with '_'.
bool is_recipe(const EmbeddedRecipe& entry) {
  return entry.name[0] != '_';
}

Json embedded(std::string_view name) {
  for (std::size_t i = 0; i < kEmbeddedRecipeCount; ++i)
    if (kEmbeddedRecipes[i].name == name)
      return base::parse_json(kEmbeddedRecipes[i].text, cat("models/", name, ".json"));
  return nullptr;
}

std::vector<std::string> string_list(const Json& value, std::string_view where) {
  std::vector<std::string> result;
  if (!value.is_array()) base::reject(where, "not a list of names");
  for (const Json& element : value) {
    if (!element.is_string())
      base::reject(where, "not a name", base::printable(element.dump(), 60));
    result.push_back(element.get<std::string>());
  }
  return result;
}

void check_source(const Json& source, const std::string& where) {
  JsonObject object(source, where);
  if (!object.get("values").is_object()) base::reject(object.path_of("values"), "not an object");
  for (const auto& [key, value] : object.get("values").items())
    paths_in(value, cat(where, ".values.", key));
  for (const Json& rule : object.get("refuse_unless")) {
    JsonObject refusal(rule, cat(where, ".refuse_unless"));
    paths_in(refusal.get_string("value"), refusal.path());
    if (!refusal.get("allowed").is_array()) base::reject(refusal.path_of("allowed"), "not a list");
    refusal.get_string("why");
    refusal.finish();
  }
  if (object.has("notices"))
    for (const Json& entry : object.get("notices")) {
      JsonObject notice(entry, cat(where, ".notices"));
      paths_in(notice.get_string("when"), notice.path());
      notice.get_string("say");
      notice.finish();
    }
  string_list(object.get("ignore_keys"), object.path_of("ignore_keys"));
  string_list(object.get("prefixes"), object.path_of("prefixes"));
  if (!object.get("tensors").is_object()) base::reject(object.path_of("tensors"), "not an object");
  if (!object.get("ignore_tensors").is_array())
    base::reject(object.path_of("ignore_tensors"), "not a list");
  if (object.has("numbers"))
    for (const auto& [letter, expression] : object.get("numbers").items())
      if (letter.size() != 1 || letter[0] < 'a' || letter[0] > 'z' || !expression.is_string())
        base::reject(object.path_of("numbers"), "not a letter and its expression",
                     base::printable(letter, 40));
  if (const Json* defaults = object.find("defaults"))
    if (!defaults->is_object()) base::reject(object.path_of("defaults"), "not an object");
  if (const Json* inside = object.find("inside")) string_list(*inside, object.path_of("inside"));
  object.finish();
}

// The shape of a recipe; expressions are parsed so that a mistake shows before any checkpoint does.
void check_document(const Json& document, const std::string& where) {
  JsonObject object(document, where);
  object.get_int("recipe", 1, 1);
  object.get_string("about");
  JsonObject match = object.get_object("match");
  for (const char* kind : {"hf", "gguf"})
    if (match.has(kind)) string_list(match.get(kind), match.path_of(kind));
  match.finish();
  JsonObject sources = object.get_object("sources");
  for (const char* kind : {"hf", "gguf"})
    if (sources.has(kind)) check_source(sources.get(kind), sources.path_of(kind));
  sources.finish();
  const Json& contract = object.get("contract");
  if (!contract.is_object()) base::reject(object.path_of("contract"), "not an object");
  paths_in(contract, object.path_of("contract"));
  object.find("extends");
  object.finish();
}

// The parents below the document: objects are merged key by key, everything else is replaced.
Json extended(Json document, const std::string& where) {
  if (!document.is_object() || !document.contains("extends")) return document;
  Json parent = document;
  for (std::size_t steps = 0; parent.contains("extends"); ++steps) {
    const Json name = parent["extends"];
    if (!name.is_string()) base::reject(cat(where, ": extends"), "not a name");
    parent = embedded(name.get<std::string>());
    if (parent.is_null() || steps == kMaxParents)
      base::reject(cat(where, ": extends"),
                   parent.is_null() ? "unknown recipe" : "too many parents",
                   base::printable(name.get<std::string>()));
    // A parent's own place in the chain is not part of what is inherited.
    document = merged(parent, document);
  }
  return document;
}

std::vector<std::string> names_in(const Json& document, const char* kind) {
  const Json& match = document["match"];
  return match.contains(kind) ? match[kind].get<std::vector<std::string>>()
                              : std::vector<std::string>{};
}

}  // namespace

Json data_file(std::string_view name) {
  Json document = embedded(name);
  QUERN_ASSERT(!document.is_null());
  return document;
}

Json merged(Json below, const Json& above) {
  if (!below.is_object() || !above.is_object()) return above;
  for (const auto& [key, value] : above.items())
    below[key] = below.contains(key) ? merged(below[key], value) : value;
  return below;
}

Recipe parse_recipe(std::string_view text, std::string_view where) {
  Json document = extended(base::parse_json(text, where), std::string(where));
  check_document(document, std::string(where));
  Recipe recipe;
  const std::size_t slash = where.find_last_of('/');
  recipe.name = std::string(where.substr(slash == std::string_view::npos ? 0 : slash + 1));
  if (const std::size_t dot = recipe.name.find('.'); dot != std::string::npos)
    recipe.name.resize(dot);
  recipe.hf_names = names_in(document, "hf");
  recipe.gguf_names = names_in(document, "gguf");
  recipe.document = std::move(document);
  return recipe;
}

std::vector<Recipe> builtin_recipes() {
  std::vector<Recipe> recipes;
  for (std::size_t i = 0; i < kEmbeddedRecipeCount; ++i)
    if (is_recipe(kEmbeddedRecipes[i]))
      recipes.push_back(parse_recipe(kEmbeddedRecipes[i].text,
                                     cat("models/", kEmbeddedRecipes[i].name, ".json")));
  return recipes;
}

std::vector<OutOfScope> out_of_scope() {
  std::vector<OutOfScope> result;
  const Json document = data_file("_out_of_scope");
  for (const Json& family : document["families"])
    result.push_back(
        {family["why"].get<std::string>(), family["names"].get<std::vector<std::string>>()});
  return result;
}

}  // namespace quern::convert
