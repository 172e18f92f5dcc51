// JSON to schemas: the keywords that are understood, and what their values must be.
#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "grammar/limits.hpp"
#include "grammar/regex.hpp"
#include "grammar/schema_formats.hpp"
#include "grammar/schema_reader.hpp"

namespace quern::grammar {

namespace {

using base::cat;

Value value_of(const Json& json) {
  Value value;
  if (json.is_null()) {
    value.text = "null";
  } else if (json.is_boolean()) {
    value.kind = kBoolean;
    value.text = json.get<bool>() ? "true" : "false";
  } else if (json.is_number()) {
    value.number = json.get<double>();
    value.kind = json.is_number_integer() || std::floor(value.number) == value.number ? kInteger : kFraction;
    value.text = json.dump();
  } else if (json.is_string()) {
    value.kind = kString;
    value.text = json.get<std::string>();
  } else if (json.is_array()) {
    value.kind = kArray;
    for (const Json& item : json) value.items.push_back(value_of(item));
  } else {
    value.kind = kObject;
    for (const auto& [name, member] : json.items()) value.members.emplace_back(name, value_of(member));
  }
  return value;
}

// Plain decimal digits of a number of at most 15 significant digits, "" otherwise.
std::string decimal_text(double value) {
  for (int digits = 0; digits <= 12; ++digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    const std::string shown = text;
    const auto n = std::count_if(shown.begin(), shown.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (n > 16) return {};
    if (std::stod(shown) == value) return shown;
  }
  return {};
}

Bound bound_of(const Json& value, bool exclusive) {
  Bound bound;
  bound.value = value.get<double>();
  bound.exclusive = exclusive;
  const bool unsigned_big = value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX;
  if (value.is_number_integer() && !unsigned_big) bound.integer = value.get<std::int64_t>();
  else if (std::floor(bound.value) == bound.value && std::abs(bound.value) < 1e15)
    bound.integer = static_cast<std::int64_t>(bound.value);
  bound.text = decimal_text(bound.value);
  return bound;
}

}  // namespace

std::uint32_t SchemaReader::count_of(const Schema& schema, std::string_view key, const Json& value) const {
  double number = value.is_number() ? value.get<double>() : -1;
  if (number < 0 || std::floor(number) != number) wrong(schema, key, value, "a whole number, 0 or more");
  if (number > kMaxRepeat && key.starts_with("min"))
    base::reject(at(cat(schema.place, "/", key)), "too large", value.dump(), cat("at most ", kMaxRepeat));
  if (number > kMaxRepeat)
    base::reject(at(cat(schema.place, "/", key)), "larger than can be counted; leave it out or lower it",
                 value.dump(), cat("at most ", kMaxRepeat));
  return static_cast<std::uint32_t>(number);
}

std::vector<SchemaId> SchemaReader::schemas_of(const Schema& schema, std::string_view key, const Json& value) {
  if (!value.is_array()) wrong(schema, key, value, "an array of schemas");
  std::vector<SchemaId> out;
  for (std::size_t i = 0; i < value.size(); ++i)
    out.push_back(add(value[i], cat(schema.place, "/", key, "/", i)));
  return out;
}

Named SchemaReader::named_of(const Schema& schema, std::string_view key, const Json& value) {
  if (!value.is_object()) wrong(schema, key, value, "an object of schemas");
  Named out;
  for (const auto& [name, json] : value.items())
    out.emplace_back(name, add(json, cat(schema.place, "/", key, "/", escaped_key(name))));
  return out;
}

SchemaId SchemaReader::one_of(const Schema& schema, std::string_view key, const Json& value) {
  return add(value, cat(schema.place, "/", key));
}

bool SchemaReader::read_structure(const std::string& key, const Json& value, Schema& schema) {
  if (key == "type") {
    schema.kinds = kinds_of(value, schema);
    schema.has_kinds = true;
  } else if (key == "enum") {
    if (!value.is_array()) wrong(schema, key, value, "an array");
    add_values(schema, value);
  } else if (key == "const") {
    add_values(schema, Json::array({value}));
  } else if (key == "$ref") {
    if (!value.is_string()) wrong(schema, key, value, "a string");
    schema.ref = resolve(value.get<std::string>(), schema);
  } else if (key == "allOf") {
    schema.all_of = schemas_of(schema, key, value);
  } else if (key == "anyOf" || key == "oneOf") {
    schema.choices.push_back({schemas_of(schema, key, value), key == "oneOf", cat(schema.place, "/", key)});
  } else if (key == "nullable") {
    if (!value.is_boolean()) wrong(schema, key, value, "true or false");
  } else if (key == "$id") {
    if (!schema.place.empty())
      base::reject(at(cat(schema.place, "/$id")), "the keyword \"$id\" is supported at the root only");
  } else {
    return false;
  }
  return true;
}

// enum and const together: the values of both.
void SchemaReader::add_values(Schema& schema, const Json& list) const {
  std::vector<Value> values;
  for (const Json& json : list) {
    Value value = value_of(json);
    const auto same = [&](const Value& other) { return equal(value, other); };
    if (schema.values && std::none_of(schema.values->begin(), schema.values->end(), same)) continue;
    if (std::none_of(values.begin(), values.end(), same)) values.push_back(std::move(value));
  }
  schema.values = std::move(values);
}

unsigned SchemaReader::kinds_of(const Json& value, const Schema& schema) const {
  if (value.is_array()) {
    unsigned kinds = 0;
    for (const Json& item : value) {
      if (item.is_array()) wrong(schema, "type", value, "names of types");
      kinds |= kinds_of(item, schema);
    }
    return kinds;
  }
  static const std::map<std::string, unsigned> kNames = {
      {"null", kNull}, {"boolean", kBoolean}, {"integer", kInteger}, {"number", kNumber},
      {"string", kString}, {"array", kArray}, {"object", kObject}};
  const auto found = value.is_string() ? kNames.find(value.get<std::string>()) : kNames.end();
  if (found == kNames.end())
    wrong(schema, "type", value, "null, boolean, integer, number, string, array, object or a list of them");
  return found->second;
}

bool SchemaReader::read_numbers(const std::string& key, const Json& value, Schema& schema) {
  if (key == "minimum" || key == "maximum" || key == "exclusiveMinimum" || key == "exclusiveMaximum") {
    schema.speaks_of |= kNumber;
    const bool old = key.starts_with("ex") && value.is_boolean();  // draft 4: see finish_numbers
    if (!value.is_number() && !old) wrong(schema, key, value, "a number");
    return true;
  }
  if (key != "multipleOf") return false;
  schema.speaks_of |= kNumber;
  const double number = value.is_number() ? value.get<double>() : 0;
  if (!(number > 0)) wrong(schema, key, value, "a number above 0");
  if (std::floor(number) != number || number > 1000)
    base::reject(at(cat(schema.place, "/multipleOf")),
                 "\"multipleOf\" is supported for whole numbers up to 1000 only", value.dump());
  schema.multiple_of = static_cast<std::int64_t>(number);
  return true;
}

void SchemaReader::finish_numbers(const Json& json, Schema& schema) const {
  const auto bound = [&](const char* key, const char* exclusive_key, bool lower) -> std::optional<Bound> {
    const auto plain = json.find(key), exclusive = json.find(exclusive_key);
    const bool old = exclusive != json.end() && exclusive->is_boolean();
    std::optional<Bound> out;
    if (plain != json.end()) out = bound_of(*plain, old && exclusive->get<bool>());
    if (exclusive == json.end() || old) return out;
    const Bound other = bound_of(*exclusive, true);
    if (!out || (lower ? other.value >= out->value : other.value <= out->value)) out = other;
    return out;
  };
  schema.minimum = bound("minimum", "exclusiveMinimum", true);
  schema.maximum = bound("maximum", "exclusiveMaximum", false);
}

bool SchemaReader::read_strings(const std::string& key, const Json& value, Schema& schema) {
  if (key != "minLength" && key != "maxLength" && key != "pattern" && key != "format") return false;
  schema.speaks_of |= kString;
  if (key == "minLength") schema.min_length = count_of(schema, key, value);
  if (key == "maxLength") schema.max_length = count_of(schema, key, value);
  if (key == "minLength" || key == "maxLength") return true;
  if (!value.is_string()) wrong(schema, key, value, "a string");
  const std::string text = value.get<std::string>();
  if (key == "format") {
    if (!format_pattern(text))
      base::reject(at(cat(schema.place, "/format")), cat("the format \"", base::printable(text, 60), "\" is not supported"),
                   {}, format_names());
    schema.formats.push_back(text);
  } else {
    regex_automaton(text, Matches::part, at(cat(schema.place, "/pattern")));  // an error names this place
    schema.patterns.push_back(text);
  }
  return true;
}

bool SchemaReader::read_arrays(const std::string& key, const Json& value, Schema& schema) {
  if (key == "prefixItems") {
    schema.prefix_items = schemas_of(schema, key, value);
  } else if (key == "items") {
    if (value.is_array()) schema.prefix_items = schemas_of(schema, key, value);  // up to draft 2019-09
    else schema.items = one_of(schema, key, value);
  } else if (key == "minItems") {
    schema.min_items = count_of(schema, key, value);
  } else if (key == "maxItems") {
    schema.max_items = count_of(schema, key, value);
  } else if (key == "uniqueItems") {
    if (!value.is_boolean()) wrong(schema, key, value, "true or false");
    schema.unique_items = value.get<bool>();
  } else if (key != "additionalItems") {
    return false;
  }
  schema.speaks_of |= kArray;
  return true;
}

// additionalItems means something beside an array of items only.
void SchemaReader::finish_arrays(const Json& json, Schema& schema) {
  const auto items = json.find("items"), more = json.find("additionalItems");
  if (items != json.end() && items->is_array() && more != json.end())
    schema.items = one_of(schema, "additionalItems", *more);
}

bool SchemaReader::read_objects(const std::string& key, const Json& value, Schema& schema) {
  if (key == "properties") {
    schema.properties = named_of(schema, key, value);
  } else if (key == "patternProperties") {
    schema.pattern_properties = named_of(schema, key, value);
    for (const auto& [pattern, id] : schema.pattern_properties)
      regex_automaton(pattern, Matches::part, at(cat(schema.place, "/patternProperties")));
  } else if (key == "additionalProperties") {
    schema.additional = one_of(schema, key, value);
  } else if (key == "propertyNames") {
    schema.property_names = one_of(schema, key, value);
  } else if (key == "minProperties") {
    schema.min_properties = count_of(schema, key, value);
  } else if (key == "maxProperties") {
    schema.max_properties = count_of(schema, key, value);
  } else if (key == "unevaluatedProperties") {
    if (!value.is_boolean())
      base::reject(at(cat(schema.place, "/", key)), "\"unevaluatedProperties\" is supported as true or false only");
    schema.evaluated_only = !value.get<bool>();
  } else if (key == "required") {
    if (!value.is_array()) wrong(schema, key, value, "an array of names");
    for (const Json& name : value) {
      if (!name.is_string()) wrong(schema, key, value, "an array of names");
      schema.required.push_back(name.get<std::string>());
    }
  } else {
    return false;
  }
  schema.speaks_of |= kObject;
  return true;
}

}  // namespace quern::grammar
