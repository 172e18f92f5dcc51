// JSON to schemas. Every keyword is handled, known to mean nothing for a text, or refused by name.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "grammar/limits.hpp"
#include "grammar/regex.hpp"
#include "grammar/schema.hpp"
#include "grammar/schema_formats.hpp"

namespace quern::grammar {

namespace {

using base::cat;
using base::Json;

constexpr std::size_t kMaxSchemas = 20'000;

const std::vector<std::string_view> kAnnotations = {
    "title",       "description", "default",          "examples",        "example",       "$schema",
    "$comment",    "deprecated",  "readOnly",         "writeOnly",       "contentSchema", "contentMediaType",
    "$defs",       "definitions", "contentEncoding",  "discriminator",   "$vocabulary",   "externalDocs",
    "$anchor",     "xml"};
const std::vector<std::string_view> kUnsupported = {
    "not",         "if",          "then",          "else",          "dependentRequired", "dependentSchemas",
    "dependencies", "contains",   "minContains",   "maxContains",   "unevaluatedItems",  "$dynamicRef",
    "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"};
const std::vector<std::string_view> kKeywords = {
    "$ref", "$id", "allOf", "anyOf", "oneOf", "type", "enum", "const", "nullable", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "format",
    "items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "properties",
    "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties",
    "maxProperties", "unevaluatedProperties"};

std::string escaped_key(std::string_view key) {  // of a JSON pointer
  std::string out;
  for (const char c : key) {
    if (c == '~') out += "~0";
    else if (c == '/') out += "~1";
    else out += c;
  }
  return out;
}

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

class Reader {
 public:
  Reader(const Json& root, const std::string& where) : root_(root) {
    document_.where = where;
    if (root.is_object()) {
      const auto id = root.find("$id");
      if (id != root.end() && id->is_string()) base_ = id->get<std::string>();
      find_anchors(root, "");
    }
  }

  SchemaDocument run() {
    add(root_, "");
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      // By number: reading may add schemas and move them.
      const auto [id, json, place] = pending_[i];
      Schema schema;
      schema.place = place;
      read(*json, schema);
      document_.schemas[id] = std::move(schema);
    }
    check_circles();
    return std::move(document_);
  }

 private:
  struct Pending {
    SchemaId id;
    const Json* json;
    std::string place;
  };

  std::string at(const std::string& place) const {
    return cat(document_.where, ": #", base::printable(place, 200));
  }
  [[noreturn]] void wrong(const Schema& schema, std::string_view key, const Json& got,
                          std::string_view expected) const {
    base::reject(at(cat(schema.place, "/", key)), "wrong value of a keyword", base::printable(got.dump(-1, ' ', false, Json::error_handler_t::replace), 60), expected);
  }

  // One schema per JSON value, however often it is referred to.
  SchemaId add(const Json& json, const std::string& place) {
    const auto found = ids_.find(&json);
    if (found != ids_.end()) return found->second;
    if (document_.schemas.size() >= kMaxSchemas)
      base::reject(document_.where, "too many schemas", {}, cat("at most ", kMaxSchemas));
    const auto id = static_cast<SchemaId>(document_.schemas.size());
    ids_[&json] = id;
    document_.schemas.emplace_back();
    pending_.push_back({id, &json, place});
    return id;
  }

  void find_anchors(const Json& json, const std::string& place) {
    if (json.is_object()) {
      const auto anchor = json.find("$anchor");
      if (anchor != json.end() && anchor->is_string())
        anchors_.try_emplace(anchor->get<std::string>(), std::make_pair(&json, place));
    }
    if (json.is_object())
      for (const auto& [key, value] : json.items()) find_anchors(value, cat(place, "/", escaped_key(key)));
    if (json.is_array())
      for (std::size_t i = 0; i < json.size(); ++i) find_anchors(json[i], cat(place, "/", i));
  }

  void read(const Json& json, Schema& schema) {
    if (json.is_boolean()) {
      schema.never = !json.get<bool>();
      return;
    }
    if (!json.is_object()) base::reject(at(schema.place), "not a schema", json.type_name(), "an object, true or false");
    for (const auto& [key, value] : json.items()) {
      if (read_structure(key, value, schema) || read_numbers(key, value, schema) ||
          read_strings(key, value, schema) || read_arrays(key, value, schema) ||
          read_objects(key, value, schema))
        continue;
      refuse_unknown(key, schema);
    }
    finish_numbers(json, schema);
    finish_arrays(json, schema);
    const auto nullable = json.find("nullable");
    if (nullable == json.end() || !nullable->is_boolean() || !nullable->get<bool>()) return;
    schema.kinds |= kNull;
  }

  void refuse_unknown(const std::string& key, const Schema& schema) const {
    if (key.starts_with("x-")) return;
    const auto is = [&](std::string_view word) { return word == key; };
    if (std::any_of(kAnnotations.begin(), kAnnotations.end(), is)) return;
    const std::string place = at(cat(schema.place, "/", escaped_key(key)));
    if (std::any_of(kUnsupported.begin(), kUnsupported.end(), is))
      base::reject(place, cat("the keyword \"", key, "\" is not supported"));
    const std::string near = base::nearest(key, kKeywords);
    base::reject(place, cat("unknown keyword \"", base::printable(key, 60), "\"",
                            near.empty() ? "" : cat(", did you mean \"", near, "\"?")));
  }

  std::uint32_t count_of(const Schema& schema, std::string_view key, const Json& value) const {
    double number = value.is_number() ? value.get<double>() : -1;
    if (number < 0 || std::floor(number) != number) wrong(schema, key, value, "a whole number, 0 or more");
    if (number > kMaxRepeat && key.starts_with("min"))
      base::reject(at(cat(schema.place, "/", key)), "too large", value.dump(), cat("at most ", kMaxRepeat));
    if (number > kMaxRepeat)
      base::reject(at(cat(schema.place, "/", key)), "larger than can be counted; leave it out or lower it",
                   value.dump(), cat("at most ", kMaxRepeat));
    return static_cast<std::uint32_t>(number);
  }

  std::vector<SchemaId> schemas_of(const Schema& schema, std::string_view key, const Json& value) {
    if (!value.is_array()) wrong(schema, key, value, "an array of schemas");
    std::vector<SchemaId> out;
    for (std::size_t i = 0; i < value.size(); ++i)
      out.push_back(add(value[i], cat(schema.place, "/", key, "/", i)));
    return out;
  }

  Named named_of(const Schema& schema, std::string_view key, const Json& value) {
    if (!value.is_object()) wrong(schema, key, value, "an object of schemas");
    Named out;
    for (const auto& [name, json] : value.items())
      out.emplace_back(name, add(json, cat(schema.place, "/", key, "/", escaped_key(name))));
    return out;
  }

  SchemaId one_of(const Schema& schema, std::string_view key, const Json& value) {
    return add(value, cat(schema.place, "/", key));
  }

  bool read_structure(const std::string& key, const Json& value, Schema& schema) {
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
  void add_values(Schema& schema, const Json& list) const {
    std::vector<Value> values;
    for (const Json& json : list) {
      Value value = value_of(json);
      const auto same = [&](const Value& other) { return equal(value, other); };
      if (schema.values && std::none_of(schema.values->begin(), schema.values->end(), same)) continue;
      if (std::none_of(values.begin(), values.end(), same)) values.push_back(std::move(value));
    }
    schema.values = std::move(values);
  }

  unsigned kinds_of(const Json& value, const Schema& schema) const {
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

  SchemaId resolve(const std::string& ref, const Schema& schema) {
    std::string fragment = ref;
    if (!base_.empty() && ref.starts_with(base_)) fragment = ref.substr(base_.size());
    if (fragment.empty() || fragment == "#") return add(root_, "");
    if (fragment[0] != '#')
      base::reject(at(cat(schema.place, "/$ref")), "only references within the schema are supported",
                   base::printable(ref, 80), "#/$defs/NAME");
    const std::string pointer = unescaped_uri(fragment.substr(1));
    if (pointer[0] != '/') {
      const auto anchor = anchors_.find(pointer);
      if (anchor == anchors_.end()) nowhere(ref, schema);
      return add(*anchor->second.first, anchor->second.second);
    }
    const Json* json = &root_;
    for (std::size_t begin = 1; begin <= pointer.size();) {
      const std::size_t end = std::min(pointer.find('/', begin), pointer.size());
      json = child_of(*json, pointer.substr(begin, end - begin));
      if (json == nullptr) nowhere(ref, schema);
      begin = end + 1;
    }
    return add(*json, pointer);
  }

  [[noreturn]] void nowhere(const std::string& ref, const Schema& schema) const {
    base::reject(at(cat(schema.place, "/$ref")), "the reference leads nowhere", base::printable(ref, 80));
  }

  static std::string unescaped_uri(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto hex = [&](std::size_t k) {
        return k < text.size() && std::isxdigit(static_cast<unsigned char>(text[k])) != 0;
      };
      if (text[i] == '%' && hex(i + 1) && hex(i + 2)) {
        out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
        i += 2;
      } else {
        out += text[i];
      }
    }
    return out;
  }

  static const Json* child_of(const Json& json, const std::string& escaped) {
    std::string key;
    for (std::size_t i = 0; i < escaped.size(); ++i) {
      const bool tilde = escaped[i] == '~' && i + 1 < escaped.size();
      key += tilde ? (escaped[i + 1] == '1' ? '/' : '~') : escaped[i];
      i += tilde ? 1 : 0;
    }
    if (json.is_object()) {
      const auto found = json.find(key);
      return found == json.end() ? nullptr : &*found;
    }
    const bool digits = !key.empty() && key.size() < 7 &&
                        std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!json.is_array() || !digits) return nullptr;
    const std::size_t index = static_cast<std::size_t>(std::stoul(key));
    return index < json.size() ? &json[index] : nullptr;
  }

  bool read_numbers(const std::string& key, const Json& value, Schema& schema) {
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

  static Bound bound_of(const Json& value, bool exclusive) {
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

  void finish_numbers(const Json& json, Schema& schema) const {
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

  bool read_strings(const std::string& key, const Json& value, Schema& schema) {
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

  bool read_arrays(const std::string& key, const Json& value, Schema& schema) {
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
  void finish_arrays(const Json& json, Schema& schema) {
    const auto items = json.find("items"), more = json.find("additionalItems");
    if (items != json.end() && items->is_array() && more != json.end())
      schema.items = one_of(schema, "additionalItems", *more);
  }

  bool read_objects(const std::string& key, const Json& value, Schema& schema) {
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

  // A schema that applies to the same value as itself has no meaning.
  void check_circles() const {
    const auto& schemas = document_.schemas;
    std::vector<std::vector<SchemaId>> next(schemas.size());
    for (std::size_t i = 0; i < schemas.size(); ++i) {
      if (schemas[i].ref) next[i].push_back(*schemas[i].ref);
      next[i].insert(next[i].end(), schemas[i].all_of.begin(), schemas[i].all_of.end());
      for (const Alternatives& choice : schemas[i].choices)
        next[i].insert(next[i].end(), choice.schemas.begin(), choice.schemas.end());
    }
    std::vector<std::uint8_t> state(schemas.size(), 0);
    for (SchemaId root = 0; root < schemas.size(); ++root) {
      if (state[root] != 0) continue;
      std::vector<std::pair<SchemaId, std::size_t>> path{{root, 0}};
      state[root] = 1;
      while (!path.empty()) {
        auto& [id, k] = path.back();
        if (k == next[id].size()) {
          state[id] = 2;
          path.pop_back();
          continue;
        }
        const SchemaId to = next[id][k++];
        if (state[to] == 1)
          base::reject(at(schemas[id].place), "refers to itself without an object or an array in between");
        if (state[to] != 0) continue;
        state[to] = 1;
        path.emplace_back(to, 0);
      }
    }
  }

  const Json& root_;
  std::string base_;  // the root's $id
  SchemaDocument document_;
  std::map<const Json*, SchemaId> ids_;
  std::vector<Pending> pending_;
  std::map<std::string, std::pair<const Json*, std::string>> anchors_;
};

}  // namespace

SchemaDocument read_schema(std::string_view text, const std::string& where) {
  if (text.size() > kMaxSourceBytes)
    base::reject(where, "too large a schema", cat(text.size(), " bytes"), cat("at most ", kMaxSourceBytes));
  const Json root = base::parse_json(text, where);
  return Reader(root, where).run();
}

}  // namespace quern::grammar
