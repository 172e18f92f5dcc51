// Reads a JSON schema into structs, keyword by keyword. Internal to schema_document.cpp (structure,
// references) and schema_keywords.cpp (what each keyword's value must be).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json_reader.hpp"
#include "grammar/schema.hpp"

namespace quern::grammar {

using base::Json;

std::string escaped_key(std::string_view key);  // of a JSON pointer

class SchemaReader {
 public:
  SchemaReader(const Json& root, const std::string& where);
  SchemaDocument run();

 private:
  struct Pending {
    SchemaId id;
    const Json* json;
    std::string place;
  };

  std::string at(const std::string& place) const;
  [[noreturn]] void wrong(const Schema& schema, std::string_view key, const Json& got,
                          std::string_view expected) const;
  // One schema per JSON value, however often it is referred to.
  SchemaId add(const Json& json, const std::string& place);
  void find_anchors(const Json& json, const std::string& place);
  void read(const Json& json, Schema& schema);
  void refuse_unknown(const std::string& key, const Schema& schema) const;
  std::uint32_t count_of(const Schema& schema, std::string_view key, const Json& value) const;
  std::vector<SchemaId> schemas_of(const Schema& schema, std::string_view key, const Json& value);
  Named named_of(const Schema& schema, std::string_view key, const Json& value);
  SchemaId one_of(const Schema& schema, std::string_view key, const Json& value);
  bool read_structure(const std::string& key, const Json& value, Schema& schema);
  void add_values(Schema& schema, const Json& list) const;
  unsigned kinds_of(const Json& value, const Schema& schema) const;
  SchemaId resolve(const std::string& ref, const Schema& schema);
  [[noreturn]] void nowhere(const std::string& ref, const Schema& schema) const;
  bool read_numbers(const std::string& key, const Json& value, Schema& schema);
  void finish_numbers(const Json& json, Schema& schema) const;
  bool read_strings(const std::string& key, const Json& value, Schema& schema);
  bool read_arrays(const std::string& key, const Json& value, Schema& schema);
  void finish_arrays(const Json& json, Schema& schema);
  bool read_objects(const std::string& key, const Json& value, Schema& schema);
  void check_circles() const;

  const Json& root_;
  std::string base_;  // the root's $id
  SchemaDocument document_;
  std::map<const Json*, SchemaId> ids_;
  std::vector<Pending> pending_;
  std::map<std::string, std::pair<const Json*, std::string>> anchors_;
};

}  // namespace quern::grammar
