// A JSON schema as plain structs: every keyword that is understood, its schemas by number. Reading
// JSON is schema_document.cpp's work; what the structs mean for an answer schema_compiler.hpp's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace quern::grammar {

using SchemaId = std::uint32_t;

// Kinds of JSON values as bits; a number without a fraction is an integer.
enum Kind : unsigned {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kFraction = 8,
  kString = 16,
  kArray = 32,
  kObject = 64,
  kNumber = kInteger | kFraction,
  kAnyKind = 127,
};

// A JSON value of enum or const.
struct Value {
  Kind kind = kNull;
  double number = 0;  // also of integers
  std::string text;   // of a string its characters, else (but for arrays and objects) its spelling
  std::vector<Value> items;
  std::vector<std::pair<std::string, Value>> members;
};
bool equal(const Value& a, const Value& b);
std::string json_text(const Value& value);        // compact
std::string json_quoted(std::string_view text);  // "..." with the shortest escapes

// Of numbers: an integer when it is one exactly.
struct Bound {
  double value = 0;
  std::optional<std::int64_t> integer;
  std::string text;  // plain decimal digits, "" when it has too many
  bool exclusive = false;
};

using Named = std::vector<std::pair<std::string, SchemaId>>;

struct Alternatives {
  std::vector<SchemaId> schemas;
  bool exactly_one = false;  // oneOf
  std::string place;
};

struct Schema {
  std::string place;    // JSON pointer
  bool never = false;   // the schema false
  unsigned kinds = kAnyKind;
  bool has_kinds = false;    // "type" was given
  unsigned speaks_of = 0;    // kinds that its keywords are about
  std::optional<std::vector<Value>> values;

  std::optional<SchemaId> ref;
  std::vector<SchemaId> all_of;
  std::vector<Alternatives> choices;

  std::optional<Bound> minimum, maximum;
  std::optional<std::int64_t> multiple_of;

  std::uint32_t min_length = 0;
  std::optional<std::uint32_t> max_length;
  std::vector<std::string> patterns, formats;

  std::vector<SchemaId> prefix_items;
  std::optional<SchemaId> items;
  std::uint32_t min_items = 0;
  std::optional<std::uint32_t> max_items;
  bool unique_items = false;

  Named properties, pattern_properties;
  std::vector<std::string> required;
  std::optional<SchemaId> additional, property_names;
  std::uint32_t min_properties = 0;
  std::optional<std::uint32_t> max_properties;
  bool evaluated_only = false;  // unevaluatedProperties: false

  const SchemaId* property(std::string_view name) const;
};

struct SchemaDocument {
  std::string where;
  std::vector<Schema> schemas;  // 0 is the root
};

// Input errors name the place as a JSON pointer: syntax, unknown or unsupported keywords, wrong
// values of keywords, references that lead nowhere or in a circle.
SchemaDocument read_schema(std::string_view text, const std::string& where);

}  // namespace quern::grammar
