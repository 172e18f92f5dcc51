// Strict reading of JSON: depth, duplicate keys, kinds, ranges, unknown keys. The only way JSON of
// users enters the contract and the recipes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace quern::base {

using Json = nlohmann::ordered_json;

// Parses UTF-8 JSON. Input errors with file and byte offset: syntax, invalid UTF-8, nesting > 128,
// a key twice in one object, trailing text. `where` names the file.
Json parse_json(std::string_view text, std::string_view where);

// Text of an enum kind: {"rms_norm", NormKind::rms_norm}.
template <class E>
struct EnumName {
  std::string_view name;
  E value;
};

// Reads one object: each get_* marks its key as used, finish() rejects what is left (with the nearest
// known key). Paths in errors: "model.json: ops.attn.d_k".
class JsonObject {
 public:
  JsonObject(const Json& value, std::string path);

  bool has(std::string_view key) const;
  bool is_null(std::string_view key) const;  // present and null
  const Json& get(std::string_view key);     // required; any kind
  const Json* find(std::string_view key);    // nullptr when absent
  bool get_bool(std::string_view key);
  std::int64_t get_int(std::string_view key, std::int64_t low, std::int64_t high);
  std::size_t get_size(std::string_view key, std::size_t low, std::size_t high);
  double get_double(std::string_view key);   // finite
  std::string get_string(std::string_view key);
  JsonObject get_object(std::string_view key);
  std::string path_of(std::string_view key) const;
  const std::string& path() const { return path_; }

  template <class E, std::size_t N>
  E get_enum(std::string_view key, const EnumName<E> (&names)[N]) {
    const std::string word = get_string(key);
    std::vector<std::string_view> known;
    for (const EnumName<E>& entry : names) {
      if (entry.name == word) return entry.value;
      known.push_back(entry.name);
    }
    reject_word(key, word, known);
  }

  void finish() const;

 private:
  [[noreturn]] void reject_word(std::string_view key, std::string_view word,
                                const std::vector<std::string_view>& known) const;
  const Json* value_;
  std::string path_;
  std::vector<std::string> used_;
};

template <class E, std::size_t N>
std::string_view enum_name(E value, const EnumName<E> (&names)[N]) {
  for (const EnumName<E>& entry : names)
    if (entry.value == value) return entry.name;
  QUERN_ASSERT(!"enum value without a name");
  return {};
}

}  // namespace quern::base
