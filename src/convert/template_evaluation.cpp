#include "convert/template_evaluation.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.hpp"
#include "convert/layer_groups.hpp"
#include "convert/recipe_data.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;
using Words = std::set<std::string>;

constexpr std::size_t kMaxLikes = 8;
// Sections of named entries, each after the ones that name its entries.
constexpr const char* kSections[] = {"blocks", "ops", "ropes", "norms"};

bool is_section(const std::string& key) {
  return std::find(std::begin(kSections), std::end(kSections), key) != std::end(kSections);
}

void collect_words(const Json& value, Words& words) {
  if (value.is_string()) words.insert(value.get<std::string>());
  if (value.is_structured())
    for (const Json& element : value) collect_words(element, words);
}

// An entry with "like" is a change of another entry of its section.
Json whole_entry(const Json& section, Json entry, Fuel& fuel, const std::string& where) {
  for (std::size_t steps = 0; entry.is_object() && entry.contains("like"); ++steps) {
    const Json name = entry["like"];
    entry.erase("like");
    if (!name.is_string() || !section.contains(name.get<std::string>()) || steps == kMaxLikes)
      base::reject(cat(where, ".like"), "no such entry", base::printable(name.dump(), 60));
    entry = merged(section[name.get<std::string>()], entry);
    fuel.keep(weight_of(entry), where);
  }
  return entry;
}

// The named sections with every "like" resolved; what is no object stays as it is.
Json whole_sections(Json contract, Fuel& fuel, const std::string& where) {
  const Json original = contract;
  for (const char* section : kSections) {
    if (!contract.contains(section) || !contract[section].is_object()) continue;
    for (auto& [name, entry] : contract[section].items())
      entry = whole_entry(original[section], entry, fuel, cat(where, ".", section, ".", name));
  }
  return contract;
}

bool reads_layer(const Json& value, const std::string& where) {
  const std::vector<std::string> paths = paths_in(value, where);
  return std::find(paths.begin(), paths.end(), "layer") != paths.end();
}

// Ops whose numbers depend on the layer, and the blocks that do or that name such an op.
struct PerLayer {
  Words ops, blocks;
};

PerLayer find_per_layer(const Json& contract, const std::string& where) {
  PerLayer result;
  if (contract.contains("ops") && contract["ops"].is_object())
    for (const auto& [name, op] : contract["ops"].items())
      if (reads_layer(op, where)) result.ops.insert(name);
  if (contract.contains("blocks") && contract["blocks"].is_object())
    for (const auto& [name, block] : contract["blocks"].items()) {
      Words words;
      collect_words(block, words);
      const bool names_one = std::any_of(words.begin(), words.end(),
                                         [&](const auto& word) { return result.ops.count(word) != 0; });
      if (names_one || reads_layer(block, where)) result.blocks.insert(name);
    }
  return result;
}

class Evaluation {
 public:
  Evaluation(const Json& contract, const Environment& environment, const std::string& where)
      : contract_(whole_sections(contract, *environment.fuel, where)),
        environment_(environment),
        where_(where),
        per_layer_(find_per_layer(contract_, where)) {}

  Json run() {
    Json result = contract_;  // keeps the order of keys
    for (auto& [key, value] : result.items()) {
      if (is_section(key)) continue;
      const std::string place = cat(where_, ".", key);
      value = key == "encoder" || key == "decoder" ? stack(value, place)
                                                   : evaluate_all(value, environment_, place);
      if (value.is_structured()) collect_words(value, words_);
    }
    for (const char* name : kSections)
      if (result.contains(name)) result[name] = section(name);
    return result;
  }

 private:
  Json stack(const Json& value, const std::string& place) {
    if (!value.is_object()) return evaluate_all(value, environment_, place);
    Json result = value;
    if (value.contains("when")) {
      const Json condition = {{"when", value["when"]}};
      if (evaluate_all(condition, environment_, place).is_null()) return nullptr;
      result.erase("when");
    }
    for (auto& [key, part] : result.items())
      part = key == "layers"
                 ? evaluate_layers(part, environment_, per_layer_.blocks, cat(place, ".", key))
                 : evaluate_all(part, environment_, cat(place, ".", key));
    return result;
  }

  Json section(const std::string& name) {
    const std::string place = cat(where_, ".", name);
    const Json& entries = contract_[name];
    if (!entries.is_object()) return evaluate_all(entries, environment_, place);
    const Words* per_layer = name == "blocks" ? &per_layer_.blocks
                             : name == "ops"  ? &per_layer_.ops
                                              : nullptr;
    Json kept = Json::object();
    for (const auto& [key, entry] : entries.items()) {
      if (per_layer != nullptr && per_layer->count(key) != 0)
        add_per_layer(key, entry, cat(place, ".", key), kept);
      else if (words_.count(key) != 0)
        kept[key] = evaluate_all(entry, environment_, cat(place, ".", key));
    }
    collect_words(kept, words_);
    return kept;
  }

  // "attn_7" for every layer 7 that has one.
  void add_per_layer(const std::string& key, const Json& entry, const std::string& place,
                     Json& kept) {
    const std::string prefix = key + "_";
    for (auto word = words_.lower_bound(prefix); word != words_.end(); ++word) {
      if (word->compare(0, prefix.size(), prefix) != 0) break;
      const std::string index = word->substr(prefix.size());
      if (index.empty() || index.find_first_not_of("0123456789") != std::string::npos) continue;
      const Json layer = std::stoll(index.substr(0, 9));
      Json value = evaluate_all(entry, of_layer(environment_, layer), place);
      if (value.is_object() && value.contains("branches"))
        for (Json& branch : value["branches"])
          if (branch.is_object() && branch.contains("op") && branch["op"].is_string() &&
              per_layer_.ops.count(branch["op"].get<std::string>()) != 0)
            branch["op"] = branch["op"].get<std::string>() + "_" + index;
      kept[*word] = std::move(value);
    }
  }

  Json contract_;
  const Environment& environment_;
  std::string where_;
  PerLayer per_layer_;
  Words words_;  // everything evaluated so far says: the names in use are among them
};

}  // namespace

Json evaluate_template(const Json& contract, const Environment& environment,
                       std::string_view where) {
  return Evaluation(contract, environment, std::string(where)).run();
}

}  // namespace quern::convert
