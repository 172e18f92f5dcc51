#include <cmath>

#include "contract/read_parts.hpp"

namespace quern::contract {

using base::cat;
using base::Json;
using base::JsonObject;

const Json& read_array(JsonObject& object, std::string_view key, std::size_t max_items) {
  const Json& value = object.get(key);
  if (!value.is_array())
    base::reject(object.path_of(key), "wrong kind of value", value.type_name(), "an array");
  if (value.size() > max_items)
    base::reject(object.path_of(key), "too many items", cat(value.size()),
                 cat("at most ", max_items));
  return value;
}

namespace {

[[noreturn]] void reject_item(const JsonObject& object, std::string_view key, std::size_t index,
                              const Json& value, std::string_view expected) {
  base::reject(cat(object.path_of(key), "[", index, "]"), "wrong value",
               value.is_structured() ? value.type_name() : base::printable(value.dump(), 40),
               expected);
}

}  // namespace

std::vector<std::string> read_strings(JsonObject& object, std::string_view key,
                                      std::size_t max_items) {
  std::vector<std::string> out;
  for (const Json& value : read_array(object, key, max_items)) {
    if (!value.is_string()) reject_item(object, key, out.size(), value, "a string");
    out.push_back(value.get<std::string>());
  }
  return out;
}

std::vector<std::int32_t> read_ids(JsonObject& object, std::string_view key,
                                   std::size_t max_items) {
  std::vector<std::int32_t> out;
  for (const Json& value : read_array(object, key, max_items)) {
    // Negative numbers are kept as signed integers by the parser, so "unsigned" means a plain id.
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > INT32_MAX)
      reject_item(object, key, out.size(), value, "a token id");
    out.push_back(value.get<std::int32_t>());
  }
  return out;
}

std::vector<float> read_floats(JsonObject& object, std::string_view key, std::size_t max_items) {
  std::vector<float> out;
  for (const Json& value : read_array(object, key, max_items)) {
    const double number = value.is_number() ? value.get<double>() : NAN;
    const float rounded = static_cast<float>(number);
    if (!std::isfinite(rounded)) reject_item(object, key, out.size(), value, "a finite float32");
    out.push_back(rounded);
  }
  return out;
}

}  // namespace quern::contract
