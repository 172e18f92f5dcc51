// JSON to schemas: the walk over a document, its references, and the keywords that are refused.
#include <algorithm>
#include <cctype>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "grammar/limits.hpp"
#include "grammar/schema_reader.hpp"

namespace quern::grammar {

namespace {

using base::cat;

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

std::string unescaped_uri(const std::string& text) {
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

const Json* child_of(const Json& json, const std::string& escaped) {
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

}  // namespace

std::string escaped_key(std::string_view key) {  // of a JSON pointer
  std::string out;
  for (const char c : key) {
    if (c == '~') out += "~0";
    else if (c == '/') out += "~1";
    else out += c;
  }
  return out;
}

SchemaReader::SchemaReader(const Json& root, const std::string& where) : root_(root) {
  document_.where = where;
  if (root.is_object()) {
    const auto id = root.find("$id");
    if (id != root.end() && id->is_string()) base_ = id->get<std::string>();
    find_anchors(root, "");
  }
}

SchemaDocument SchemaReader::run() {
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

std::string SchemaReader::at(const std::string& place) const {
  return cat(document_.where, ": #", base::printable(place, 200));
}

void SchemaReader::wrong(const Schema& schema, std::string_view key, const Json& got,
                        std::string_view expected) const {
  base::reject(at(cat(schema.place, "/", key)), "wrong value of a keyword", base::printable(got.dump(-1, ' ', false, Json::error_handler_t::replace), 60), expected);
}

// One schema per JSON value, however often it is referred to.
SchemaId SchemaReader::add(const Json& json, const std::string& place) {
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

void SchemaReader::find_anchors(const Json& json, const std::string& place) {
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

void SchemaReader::read(const Json& json, Schema& schema) {
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

void SchemaReader::refuse_unknown(const std::string& key, const Schema& schema) const {
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

SchemaId SchemaReader::resolve(const std::string& ref, const Schema& schema) {
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

void SchemaReader::nowhere(const std::string& ref, const Schema& schema) const {
  base::reject(at(cat(schema.place, "/$ref")), "the reference leads nowhere", base::printable(ref, 80));
}

// A schema that applies to the same value as itself has no meaning.
void SchemaReader::check_circles() const {
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

SchemaDocument read_schema(std::string_view text, const std::string& where) {
  if (text.size() > kMaxSourceBytes)
    base::reject(where, "too large a schema", cat(text.size(), " bytes"), cat("at most ", kMaxSourceBytes));
  const Json root = base::parse_json(text, where);
  return SchemaReader(root, where).run();
}

}  // namespace quern::grammar
