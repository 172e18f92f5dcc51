// Configuration + recipe -> contract and tensor plan: the values of the source, what is refused,
// the template, the names.
#include <algorithm>

#include "base/strings.hpp"
#include "convert/contract_template.hpp"
#include "convert/expression.hpp"
#include "convert/glob.hpp"
#include "convert/pooling_import.hpp"
#include "convert/recipe.hpp"
#include "convert/recipe_data.hpp"
#include "convert/recipe_source.hpp"
#include "convert/template_evaluation.hpp"
#include "convert/tensor_plan.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;

constexpr std::size_t kMaxDivisors = 4096;
constexpr std::size_t kMaxNameBytes = 200;
constexpr std::size_t kMaxAnnounced = 20;  // keys that are named

void refuse_by_recipe(const Source& source) {
  for (const Json& rule : source.section["refuse_unless"]) {
    const std::string text = rule["value"].get<std::string>();
    const std::optional<Json> value =
        evaluate(parse_expression(text, source.place), source.of_config, source.where);
    const Json& allowed = rule["allowed"];
    if (value && std::find(allowed.begin(), allowed.end(), *value) != allowed.end()) continue;
    base::reject(source.where,
                 cat("refused by the recipe: ", rule["why"].get<std::string>(), ": ", text),
                 value ? base::printable(value->dump(), 60) : "no value", allowed.dump());
  }
}

void add_notices(const Source& source, std::vector<std::string>& notices) {
  if (!source.section.contains("notices")) return;
  for (const Json& notice : source.section["notices"])
    if (evaluate_all(notice["when"], source.of_config, source.where) == Json(true))
      notices.push_back(notice["say"].get<std::string>());
}

// Values in the order of the recipe; errors name the value and the expression.
Json values_of(const Source& source) {
  Json values = Json::object();
  for (const auto& [key, expression] : source.section["values"].items())
    values[key] = evaluate_all(expression, source.of_config, cat(source.where, ": ", key));
  return values;
}

// A label for people: the last part of a path or hub name, no local directory.
std::string label_of(const Json& values, const std::string& fallback) {
  std::string text = values.contains("name") && values["name"].is_string()
                         ? values["name"].get<std::string>()
                         : "";
  while (!text.empty() && (text.back() == '/' || text.back() == '\\')) text.pop_back();
  text = text.substr(text.find_last_of("/\\") + 1);
  return text.empty() ? fallback : base::printable(text, kMaxNameBytes);
}

std::vector<float> divisors_of(const checkpoint::Checkpoint& checkpoint, const std::string& name) {
  const checkpoint::SourceTensor* tensor = checkpoint.find(name);
  if (tensor == nullptr) return {};
  if (tensor->values == 0 || tensor->values > kMaxDivisors)
    base::reject(cat(checkpoint.where(), ": tensor ", base::printable(name)),
                 "number of RoPE divisors", cat(tensor->values), cat("1 .. ", kMaxDivisors));
  std::vector<float> values(tensor->values);
  checkpoint::to_float(*tensor, 0, tensor->values, values.data());
  return values;
}

Environment environment_of(const Json& values, const Source& source) {
  Environment environment = source.of_config;
  environment.find = [&values](std::string_view path) { return find_path(values, path); };
  return environment;
}

// "; from $hidden_size" for an error at "PLACE: ops.attn.d_k": what the recipe's value for that key of the contract is
// made of. "" where the place leads to no expression.
std::string origin_of(const Recipe& recipe, const Source& source, std::string_view where, std::string_view place) {
  if (!where.starts_with(place)) return {};
  std::string path = replaced(std::string(where.substr(place.size())), ": ", ".");
  path.erase(0, path.find_first_not_of('.'));
  const Json* at = find_path(recipe.document["contract"], path);
  if (at == nullptr || !at->is_string()) return {};
  std::string text = at->get<std::string>();
  const Json& values = source.section["values"];
  const auto value = text.starts_with("$") ? values.find(text.substr(1)) : values.end();
  if (value != values.end() && value->is_string()) text = value->get<std::string>();
  return cat("; from ", base::printable(text, 120));
}

FilledTemplate fill(const Recipe& recipe, const Source& source, Json values, TemplateInput input) {
  values["name"] = label_of(values, recipe.name);
  const std::string place = cat(source.where, " by recipe ", recipe.name);
  try {
    Json evaluated = evaluate_template(recipe.document["contract"], environment_of(values, source), place);
    input.family = recipe.name;
    return fill_template(std::move(evaluated), input, place);
  } catch (const base::Error& error) {
    throw base::Error(error.code(), error.where(),
                      cat(error.what_only(), origin_of(recipe, source, error.where(), place)));
  }
}

void announce_unknown(Resolved& resolved) {
  const std::vector<std::string>& keys = resolved.unknown_keys;
  for (std::size_t i = 0; i < std::min(keys.size(), kMaxAnnounced); ++i)
    resolved.notices.push_back(cat("configuration key not known to the recipe, ignored: ", keys[i]));
  if (keys.size() > kMaxAnnounced)
    resolved.notices.push_back(cat("and ", keys.size() - kMaxAnnounced, " more configuration keys"));
}

}  // namespace

Resolved resolve(const Recipe& recipe, const checkpoint::Checkpoint& checkpoint,
                 const Adaptations& adaptations) {
  Source source;
  open_source(recipe, checkpoint.config_json(), checkpoint.where(), checkpoint.kind(), source);
  source.of_config.tensor_rows = [&](std::string_view name) -> std::optional<std::uint64_t> {
    const checkpoint::SourceTensor* tensor = checkpoint.find(name);
    return tensor == nullptr || tensor->shape.empty() ? std::nullopt
                                                      : std::optional(tensor->shape[0]);
  };
  refuse_by_recipe(source);
  Json values = values_of(source);
  const NameMap names(source.section, checkpoint, source.place);
  Resolved resolved;
  add_notices(source, resolved.notices);
  const std::optional<bool> tied = tied_by_tensors(names, environment_of(values, source));
  if (tied && values.contains("tied") && values["tied"] != Json(*tied) &&
      checkpoint.kind() == checkpoint::SourceKind::hugging_face)
    resolved.notices.push_back(*tied ? "head is the token embedding (the checkpoint stores one "
                                       "matrix), though the configuration says it is not"
                                     : "head is a matrix of its own (the checkpoint stores two "
                                       "different ones), though the configuration says it is tied");
  if (tied) values["tied"] = *tied;
  TemplateInput input{.adaptations = &adaptations};
  input.divisors = [&](const std::string& name) { return divisors_of(checkpoint, name); };
  FilledTemplate filled = fill(recipe, source, values, std::move(input));
  resolved.contract = std::move(filled.contract);
  resolved.unknown_keys = unknown_keys(source, checkpoint.kind());
  resolved.unknown_keys.insert(resolved.unknown_keys.end(), filled.unknown_keys.begin(),
                               filled.unknown_keys.end());
  resolved.notices.insert(resolved.notices.end(), filled.notices.begin(), filled.notices.end());
  announce_unknown(resolved);
  resolved.pooling = import_pooling(checkpoint, resolved.contract, resolved.notices);
  plan_tensors(names, environment_of(values, source), checkpoint, resolved);
  return resolved;
}

contract::Contract resolve_config(const Recipe& recipe, std::string_view config_json,
                                  std::string_view where) {
  Source source;
  open_source(recipe, config_json, where, checkpoint::SourceKind::hugging_face, source);
  refuse_by_recipe(source);
  const Adaptations none;
  return fill(recipe, source, values_of(source), {.adaptations = &none}).contract;
}

}  // namespace quern::convert
