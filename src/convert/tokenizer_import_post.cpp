// Post-processors of tokenizer.json: ids and token types around one text and two.
#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_parts.hpp"

namespace quern::convert {

using base::cat;
using base::Json;
using base::printable;
using base::reject;
using contract::PairTemplate;

namespace {

constexpr std::int64_t kMostValue = std::int64_t{1} << 30;

std::int32_t small_integer(const Json& value, std::string_view where, std::string_view what) {
  if (!value.is_number_integer())
    reject(where, cat(what, " is not an integer"), printable(value.dump(), 40));
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(value.get<std::int64_t>(), -1, kMostValue));
}

std::vector<std::int32_t> ids_of_special(const Json& processor, const std::string& name,
                                         std::string_view where) {
  const Json* table = member(processor, "special_tokens");
  const Json* entry = table == nullptr ? nullptr : member(*table, name);
  const Json* ids = entry == nullptr ? nullptr : member(*entry, "ids");
  if (ids == nullptr || !ids->is_array())
    reject(where, "template names a special token without ids", printable(name));
  std::vector<std::int32_t> out;
  for (const Json& id : *ids) out.push_back(small_integer(id, where, "special token id"));
  return out;
}

std::int32_t type_of(const Json& piece, std::string_view where) {
  const Json* type = member(piece, "type_id");
  const std::int32_t value = type == nullptr ? 0 : small_integer(*type, where, "type_id");
  if (value < 0) reject(cat(where, ": type_id"), "must not be negative");
  return value;
}

// A list of SpecialToken and Sequence pieces; the sequences must be `names` in this order.
PairTemplate read_template(const Json& processor, std::string_view key, std::string_view names,
                           std::string_view where) {
  const Json* list = member(processor, key);
  if (list == nullptr || !list->is_array()) reject(cat(where, ": ", key), "a list is missing");
  PairTemplate out;
  std::vector<std::int32_t>* const ids[] = {&out.prefix_ids, &out.middle_ids, &out.suffix_ids};
  std::vector<std::int32_t>* const types[] = {&out.prefix_types, &out.middle_types,
                                              &out.suffix_types};
  std::size_t seen = 0;
  for (const Json& piece : *list) {
    if (const Json* special = member(piece, "SpecialToken")) {
      const std::size_t side = seen == names.size() ? 2 : seen;
      for (const std::int32_t id :
           ids_of_special(processor, text_member(*special, "id", where), where)) {
        ids[side]->push_back(id);
        types[side]->push_back(type_of(*special, where));
      }
    } else if (const Json* sequence = member(piece, "Sequence")) {
      const bool known =
          seen < names.size() && text_member(*sequence, "id", where) == std::string(1, names[seen]);
      if (!known) reject(cat(where, ": ", key), "sequences other than A, or A and B in this order");
      (seen == 0 ? out.first_type : out.second_type) = type_of(*sequence, where);
      ++seen;
    } else {
      reject(where, "unknown piece of a template", printable(piece.dump(), 80),
             "SpecialToken or Sequence");
    }
  }
  if (seen != names.size())
    reject(cat(where, ": ", key), "a template needs one Sequence for each text", cat(seen),
           cat(names.size()));
  return out;
}

// ["</s>", 2]
std::int32_t pair_id(const Json& processor, std::string_view key, std::string_view where) {
  const Json* pair = member(processor, key);
  if (pair == nullptr || !pair->is_array() || pair->size() != 2 || !(*pair)[1].is_number_integer())
    reject(cat(where, ": ", key), "wrong value", {}, "[text, id]");
  return small_integer((*pair)[1], where, key);
}

struct Templates {
  PairTemplate single;
  std::optional<PairTemplate> pair;
};

// Of older files: one token in front, another at the ends of the texts; two between them, and no
// token types, where `doubled`.
Templates classic(std::int32_t front, std::int32_t end, bool doubled) {
  const std::int32_t second = doubled ? 0 : 1;
  PairTemplate single{{front}, {0}, 0, {}, {}, 0, {end}, {0}};
  PairTemplate pair{{front}, {0}, 0, {end}, {0}, second, {end}, {second}};
  if (doubled) pair.middle_ids = {end, end}, pair.middle_types = {0, 0};
  return {single, pair};
}

void surround(std::vector<std::int32_t>& inner, const std::vector<std::int32_t>& outer,
              bool front) {
  inner.insert(front ? inner.begin() : inner.end(), outer.begin(), outer.end());
}

// Processors run one after another, each around what the ones before it made.
void add_around(PairTemplate& inner, const PairTemplate& outer) {
  surround(inner.prefix_ids, outer.prefix_ids, true);
  surround(inner.prefix_types, outer.prefix_types, true);
  surround(inner.middle_ids, outer.middle_ids, false);
  surround(inner.middle_types, outer.middle_types, false);
  surround(inner.suffix_ids, outer.suffix_ids, false);
  surround(inner.suffix_types, outer.suffix_types, false);
  inner.first_type = outer.first_type;
  inner.second_type = outer.second_type;
}

Templates read_processor(const Json& step, const std::string& type, std::string_view where) {
  if (type == "RobertaProcessing" || type == "BertProcessing")
    return classic(pair_id(step, "cls", where), pair_id(step, "sep", where),
                   type == "RobertaProcessing");
  if (type != "TemplateProcessing")
    reject(where, "unknown post-processor", cat("\"", printable(type), "\""));
  Templates out{read_template(step, "single", "A", where), std::nullopt};
  const Json* pair = member(step, "pair");
  if (pair != nullptr && !pair->empty()) out.pair = read_template(step, "pair", "AB", where);
  return out;
}

void set_single_template(const PairTemplate& single, contract::TokenizerDescription& out) {
  out.prefix_ids = single.prefix_ids;
  out.prefix_types = single.prefix_types;
  out.text_type = single.first_type;
  out.suffix_ids = single.suffix_ids;
  out.suffix_types = single.suffix_types;
}

}  // namespace

void set_classic_templates(std::int32_t front, std::int32_t end, bool doubled,
                           contract::TokenizerDescription& out) {
  const Templates made = classic(front, end, doubled);
  set_single_template(made.single, out);
  out.pair = made.pair;
}

void import_post_processor(const Json& value, std::string_view where,
                           contract::TokenizerDescription& out) {
  Templates all{{}, PairTemplate{}};
  all.pair->second_type = 1;  // what the reference does without a processor
  for (const Json* step : flat_steps(value, "processors", where)) {
    const std::string type = text_member(*step, "type", where);
    if (type == "ByteLevel") continue;
    const Templates made = read_processor(*step, type, where);
    add_around(all.single, made.single);
    if (!made.pair) all.pair.reset();
    if (all.pair) add_around(*all.pair, *made.pair);
  }
  set_single_template(all.single, out);
  out.pair = all.pair;
}

}  // namespace quern::convert
