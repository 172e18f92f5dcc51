// One pass over a line of JSON without building a document: is it strict JSON, and where are the members of its
// outermost object? For what must be fast over millions of lines (the index of the input, the lines of an output
// that is resumed). Not here: values; what is answered is read with base/json_reader.hpp.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quern::batch {

struct JsonMember {
  std::string_view key;    // between its quotes, escapes as they stand
  std::string_view value;  // as it stands
};

struct JsonFault {
  std::size_t offset;
  const char* what;
};

// Strict: RFC 8259, UTF-8, pairs of surrogates, nesting of at most 128, nothing behind the value. On success `members`
// are those of the outermost object, empty when the value is none.
std::optional<JsonFault> scan_json(std::string_view text, std::vector<JsonMember>& members);

// The member of this name, null when there is none (or it is there twice: the first).
const JsonMember* find_member(const std::vector<JsonMember>& members, std::string_view key);

// What a string of valid JSON (quotes included) says; nothing when `value` is no string.
std::optional<std::string> json_string(std::string_view value);

}  // namespace quern::batch
