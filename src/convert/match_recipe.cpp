// Which recipe reads a checkpoint: by the class or type its configuration names, or by --arch-as.
#include <algorithm>

#include "base/strings.hpp"
#include "convert/expression.hpp"
#include "convert/glob.hpp"
#include "convert/nearest_recipe.hpp"
#include "convert/recipe.hpp"
#include "convert/task_recipe.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;
using checkpoint::Checkpoint;

bool is_gguf(const Checkpoint& checkpoint) {
  return checkpoint.kind() == checkpoint::SourceKind::gguf;
}

std::string text_at(const Json& config, std::string_view path) {
  const Json* value = find_path(config, path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

// What a configuration says about itself; "" where it says nothing.
struct Names {
  std::string class_name, model_type;  // of GGUF files the architecture and nothing
  const std::string& architecture() const { return class_name.empty() ? model_type : class_name; }
};

Names names_of(const Checkpoint& checkpoint) {
  const Json config = base::parse_json(checkpoint.config_json(), checkpoint.where());
  if (is_gguf(checkpoint)) return {text_at(config, "general.architecture"), ""};
  Names names{text_at(config, "architectures"), text_at(config, "model_type")};
  const Json* classes = find_path(config, "architectures");
  if (classes != nullptr && classes->is_array() && !classes->empty() && classes->front().is_string())
    names.class_name = classes->front().get<std::string>();
  return names;
}

bool lists(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_family_word(std::string_view name) {
  return std::none_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

// "ForMaskedLM" of "ZebraForMaskedLM", "Model" of "ZebraModel"; "" of other names.
std::string_view ending_of(std::string_view class_name) {
  const std::size_t at = class_name.rfind("For");
  if (at != std::string_view::npos && at > 0) return class_name.substr(at);
  return class_name.ends_with("Model") ? std::string_view("Model") : std::string_view();
}

// "Zebra" of "ZebraForCausalLM"; other names whole.
std::string_view stem_of(std::string_view name) {
  return name.substr(0, name.size() - ending_of(name).size());
}

// The known name that `name` may be a slip of. Endings are long and common: the rest must be near too.
std::string nearest_name(const std::string& name, const std::vector<std::string_view>& known) {
  const std::string near = base::nearest(name, known);
  return near.empty() || base::nearest(stem_of(name), {stem_of(near)}).empty() ? std::string() : near;
}

// The recipe for --arch-as NAME. A class is taken at its word; a family's name keeps the kind of head that the
// configuration's own class names ("ForMaskedLM").
Recipe treated_as(const std::vector<Recipe>& recipes, Recipe recipe, const Names& own, const std::string& name) {
  if (lists(recipe.hf_names, own.class_name)) return recipe;
  if (lists(recipe.hf_names, name)) recipe.treated_as = name;
  const std::string_view ending = ending_of(own.class_name);
  if (!is_family_word(name) || ending.empty()) return recipe;
  for (const std::string& known : recipe.hf_names)
    if (ending_of(known) == ending) {
      recipe.treated_as = known;
      return recipe;
    }
  for (const std::string& type : recipe.hf_names)
    if (is_family_word(type))
      if (auto task = task_recipe(recipes, own.class_name, type)) return *std::move(task);
  return recipe;
}

[[noreturn]] void reject_architecture(const std::vector<Recipe>& recipes, const std::string& name,
                                      const Checkpoint& checkpoint, std::string_view where) {
  const bool gguf = is_gguf(checkpoint);
  const std::string shown = base::printable(name, 80);
  for (const OutOfScope& family : out_of_scope())
    for (const std::string& pattern : family.names)
      if (glob_match(pattern, lower(name)))
        base::reject(where, cat("architecture \"", shown, "\" is out of scope: ", family.why,
                                "; quern-convert --print-supported-models lists what is supported"));
  std::vector<std::string_view> known;
  for (const Recipe& recipe : recipes)
    for (const std::string& word : gguf ? recipe.gguf_names : recipe.hf_names) known.push_back(word);
  const std::string near = name.empty() ? "" : nearest_name(name, known);
  const std::string what = !name.empty() ? cat("unsupported architecture \"", shown, "\"")
                           : gguf        ? "no general.architecture"
                                         : "no architectures and no model_type in the configuration";
  const std::string nearest = describe_nearest(recipes, checkpoint);
  base::reject(where, cat(what, near.empty() ? "" : cat(" (did you mean \"", near, "\"?)"),
                          nearest.empty() ? "" : cat("; nearest recipe: ", nearest),
                          "; --arch-as NAME treats it as one of --print-supported-models, --recipe FILE "
                          "adds a family"));
}

}  // namespace

Recipe match_recipe(const std::vector<Recipe>& recipes, const Checkpoint& checkpoint, std::string_view arch_as) {
  const bool gguf = is_gguf(checkpoint);
  const Names own = names_of(checkpoint);
  const std::string name = arch_as.empty() ? own.architecture() : std::string(arch_as);
  for (const Recipe& recipe : recipes) {
    const bool listed = lists(gguf ? recipe.gguf_names : recipe.hf_names, name);
    if (!listed && (arch_as.empty() || recipe.name != name)) continue;
    return arch_as.empty() || gguf ? recipe : treated_as(recipes, recipe, own, name);
  }
  if (!gguf)
    if (auto recipe = task_recipe(recipes, name, own.model_type)) return *std::move(recipe);
  reject_architecture(recipes, name, checkpoint, arch_as.empty() ? checkpoint.where() : "--arch-as");
}

}  // namespace quern::convert
