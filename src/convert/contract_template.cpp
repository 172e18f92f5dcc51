#include "convert/contract_template.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "contract/json.hpp"
#include "convert/derive.hpp"
#include "convert/recipe_data.hpp"
#include "convert/rope_config.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;

Json& object_at(Json& parent, const char* key, std::string_view where) {
  if (!parent.contains(key)) parent[key] = Json::object();
  if (!parent[key].is_object()) base::reject(cat(where, ".", key), "not an object");
  return parent[key];
}

Json over_neutral(const Json& neutral, const char* kind, const Json& value) {
  return neutral.contains(kind) ? merged(neutral[kind], value) : value;
}

void fill_blocks(Json& contract, const Json& neutral, std::string_view where) {
  for (auto& [name, block] : object_at(contract, "blocks", where).items()) {
    block = over_neutral(neutral, "block", block);
    if (!block.is_object() || !block.contains("branches") || !block["branches"].is_array())
      base::reject(cat(where, ".blocks.", name), "no list of branches");
    for (Json& branch : block["branches"]) branch = over_neutral(neutral, "branch", branch);
  }
}

// An embedding over its neutral values.
Json whole_embedding(const Json& contract, const Json& neutral, const Json& value) {
  Json below = neutral["embedding"];
  below["d_embed"] = contract.contains("d_model") ? contract["d_model"] : Json();
  Json result = merged(std::move(below), value);
  if (result.is_object() && result["positions"].is_object())
    result["positions"] = over_neutral(neutral, "positions", result["positions"]);
  return result;
}

void fill_stack(Json& contract, const char* key, const Json& neutral, std::string_view where) {
  if (!contract.contains(key)) contract[key] = nullptr;
  Json& stack = contract[key];
  if (!stack.is_object()) return;
  if (!stack.contains("layers") || !stack["layers"].is_array())
    base::reject(cat(where, ".", key), "no list of layer groups");
  for (Json& group : stack["layers"]) group = over_neutral(neutral, "group", group);
  if (std::string_view(key) != "encoder") return;
  if (!stack.contains("embedding")) stack["embedding"] = nullptr;
  if (!stack["embedding"].is_object()) return;
  Json own = neutral["encoder_embedding"];
  own["vocab_size"] = contract.contains("vocab_size") ? contract["vocab_size"] : Json();
  stack["embedding"] =
      whole_embedding(contract, neutral, merged(std::move(own), stack["embedding"]));
}

// Merges the neutral values below every object of the template.
void fill_neutral(Json& contract, const Json& neutral, std::string_view where) {
  contract["embedding"] =
      whole_embedding(contract, neutral, object_at(contract, "embedding", where));
  contract["head"] = over_neutral(neutral, "head", object_at(contract, "head", where));
  derive_labels(contract["head"], cat(where, ".head"));
  if (Json& transform = contract["head"]["transform"]; transform.is_object())
    transform = over_neutral(neutral, "transform", transform);
  for (auto& [name, norm] : object_at(contract, "norms", where).items())
    norm = over_neutral(neutral, "norm", norm);
  for (auto& [name, op] : object_at(contract, "ops", where).items()) {
    const bool named = op.is_object() && op.contains("kind") && op["kind"].is_string();
    if (!named) continue;
    op = over_neutral(neutral, op["kind"].get<std::string>().c_str(), op);
    derive_attention(op, cat(where, ".ops.", name));
    for (const char* part : {"expert", "shared"})
      if (op.contains(part) && op[part].is_object())
        op[part] = over_neutral(neutral, "ffn", op[part]);
    if (op.contains("shared") && op["shared"].is_object())
      op["shared"] = over_neutral(neutral, "shared_expert", op["shared"]);
  }
  fill_blocks(contract, neutral, where);
  fill_stack(contract, "encoder", neutral, where);
  fill_stack(contract, "decoder", neutral, where);
}

// Builds the tables; the longest usable length of any rope becomes the model's.
std::map<std::string, contract::Rope> build_ropes(Json& contract, const Json& neutral,
                                                  const TemplateInput& input,
                                                  std::string_view where, FilledTemplate& out) {
  std::map<std::string, contract::Rope> ropes;
  const Json max_positions =
      contract.contains("max_positions") ? contract["max_positions"] : Json();
  std::size_t longest = 0;
  for (auto& [name, value] : object_at(contract, "ropes", where).items()) {
    const std::string place = cat(where, ".ropes.", name);
    if (!value.is_object()) base::reject(place, "not an object");
    Json entry = over_neutral(neutral, "rope", value);
    const auto table = [&](const char* key) {
      const Json tensor = entry.contains(key) ? entry[key] : Json();
      entry.erase(key);
      return tensor.is_string() && input.divisors ? input.divisors(tensor.get<std::string>())
                                                  : std::vector<float>();
    };
    const std::vector<float> divisors = table("divisors");
    const std::vector<float> for_short = table("short_divisors"), for_long = table("long_divisors");
    entry["max_positions"] = max_positions;
    RopeReading reading = read_rope(entry, place);
    reading.spec.divisors = divisors;
    if (!for_short.empty()) reading.spec.short_factor = {for_short.begin(), for_short.end()};
    if (!for_long.empty()) reading.spec.long_factor = {for_long.begin(), for_long.end()};
    // A table of divisors is how GGUF files store the bands rule.
    const bool stored = !reading.spec.divisors.empty() && reading.spec.rule == RopeRule::none;
    adapt_rope(*input.adaptations, reading);
    contract::Rope rope = build_rope(reading.spec, place);
    if (stored && !reading.spec.divisors.empty()) rope.rule = rope_rule_name(RopeRule::bands);
    ropes.emplace(name, std::move(rope));
    longest = std::max(longest, reading.max_positions);
    contract["max_positions"] = longest;
    out.unknown_keys.insert(out.unknown_keys.end(), reading.unknown_keys.begin(),
                            reading.unknown_keys.end());
    out.notices.insert(out.notices.end(), reading.notices.begin(), reading.notices.end());
  }
  if (ropes.empty() && any_wish(*input.adaptations))
    base::usage_error("--rope-*", "this model has no rotary positions");
  return ropes;
}

}  // namespace

FilledTemplate fill_template(Json evaluated, const TemplateInput& input, std::string_view where) {
  FilledTemplate out;
  const Json neutral = data_file("_neutral");
  fill_neutral(evaluated, neutral, where);
  // Sections that are not the recipe's are written as an empty contract has them, in its spelling.
  contract::Contract blank{};
  blank.family = input.family;
  blank.ropes = build_ropes(evaluated, neutral, input, where, out);
  blank.tokenizer.model = "none";
  Json document = base::parse_json(contract::write_contract(blank), where);
  evaluated.erase("ropes");
  for (const auto& [key, value] : evaluated.items()) document[key] = value;
  out.contract = contract::read_draft(document.dump(), where);
  return out;
}

}  // namespace quern::convert
