#include "convert/contract_template.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "contract/json.hpp"
#include "convert/expression.hpp"
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

void fill_stack(Json& contract, const char* key, const Json& neutral, std::string_view where) {
  if (!contract.contains(key)) {
    contract[key] = nullptr;
    return;
  }
  Json& stack = contract[key];
  if (!stack.is_object()) return;
  if (!stack.contains("layers") || !stack["layers"].is_array())
    base::reject(cat(where, ".", key), "no list of layer groups");
  for (Json& group : stack["layers"]) group = over_neutral(neutral, "group", group);
}

// Merges the neutral values below every object of the template.
void fill_neutral(Json& contract, const Json& neutral, std::string_view where) {
  Json embedding = neutral["embedding"];
  embedding["d_embed"] = contract.contains("d_model") ? contract["d_model"] : Json();
  contract["embedding"] = merged(std::move(embedding), object_at(contract, "embedding", where));
  if (Json& table = contract["embedding"]["positions"]; table.is_object())
    table = over_neutral(neutral, "positions", table);
  contract["head"] = over_neutral(neutral, "head", object_at(contract, "head", where));
  for (auto& [name, norm] : object_at(contract, "norms", where).items())
    norm = over_neutral(neutral, "norm", norm);
  for (auto& [name, op] : object_at(contract, "ops", where).items()) {
    const bool named = op.is_object() && op.contains("kind") && op["kind"].is_string();
    if (!named) continue;
    op = over_neutral(neutral, op["kind"].get<std::string>().c_str(), op);
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
  for (auto& [name, value] : object_at(contract, "ropes", where).items()) {
    const std::string place = cat(where, ".ropes.", name);
    if (!value.is_object()) base::reject(place, "not an object");
    Json entry = over_neutral(neutral, "rope", value);
    const Json divisors = entry.contains("divisors") ? entry["divisors"] : Json();
    entry.erase("divisors");
    entry["max_positions"] = max_positions;
    RopeReading reading = read_rope(entry, place);
    if (divisors.is_string() && input.divisors)
      reading.spec.divisors = input.divisors(divisors.get<std::string>());
    // A table of divisors is how GGUF files store the bands rule.
    const bool stored = !reading.spec.divisors.empty() && reading.spec.rule == RopeRule::none;
    adapt_rope(*input.adaptations, reading);
    contract::Rope rope = build_rope(reading.spec, place);
    if (stored && !reading.spec.divisors.empty()) rope.rule = rope_rule_name(RopeRule::bands);
    ropes.emplace(name, std::move(rope));
    contract["max_positions"] = reading.max_positions;
    out.unknown_keys.insert(out.unknown_keys.end(), reading.unknown_keys.begin(),
                            reading.unknown_keys.end());
    out.notices.insert(out.notices.end(), reading.notices.begin(), reading.notices.end());
  }
  if (ropes.empty() && any_wish(*input.adaptations))
    base::usage_error("--rope-*", "this model has no rotary positions");
  return ropes;
}

std::uint64_t size_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return 0;
  return found->is_number_unsigned()
             ? found->get<std::uint64_t>()
             : static_cast<std::uint64_t>(std::max<std::int64_t>(found->get<std::int64_t>(), 0));
}

bool is_object_with(const Json& value, const std::string& key) {
  return value.is_object() && value.contains(key);
}

// n_kv_heads * (d_k + d_v) over the branches of a block that fill the cache.
std::uint64_t cache_values_of_block(const Json& contract, const Json& name) {
  std::uint64_t values = 0;
  if (!name.is_string() || !is_object_with(contract["blocks"], name.get<std::string>())) return 0;
  for (const Json& branch : contract["blocks"][name.get<std::string>()]["branches"]) {
    if (!is_object_with(branch, "op") || !branch["op"].is_string()) continue;
    if (!is_object_with(contract["ops"], branch["op"].get<std::string>())) continue;
    const Json& op = contract["ops"][branch["op"].get<std::string>()];
    if (is_object_with(op, "kv_from") && op["kv_from"].is_null())
      values += size_at(op, "n_kv_heads") * (size_at(op, "d_k") + size_at(op, "d_v"));
  }
  return values;
}

// The derived number of the cache section. What is malformed
// counts as zero here; the strict reader names it.
std::uint64_t cache_values(const Json& contract) {
  std::uint64_t sum = 0;
  if (!contract["decoder"].is_object()) return 0;
  for (const Json& group : contract["decoder"]["layers"]) {
    if (!is_object_with(group, "pattern") || !group["pattern"].is_array()) continue;
    std::uint64_t values = 0;
    for (const Json& name : group["pattern"]) values += cache_values_of_block(contract, name);
    sum += values * size_at(group, "repeat");
  }
  return sum;
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
  document["cache"]["values_per_token"] = cache_values(document);
  out.contract = contract::read_contract(document.dump(), where);
  return out;
}

}  // namespace quern::convert
