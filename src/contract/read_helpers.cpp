#include <cmath>

#include "contract/read_parts.hpp"

namespace quern::contract {

using base::cat;
using base::Json;
using base::JsonObject;

namespace {

const Json& checked_array(const Json& value, const std::string& path, std::size_t max_items) {
  if (!value.is_array()) base::reject(path, "wrong kind of value", value.type_name(), "an array");
  if (value.size() > max_items)
    base::reject(path, "too many items", cat(value.size()), cat("at most ", max_items));
  return value;
}

[[noreturn]] void reject_item(const std::string& path, std::size_t index, const Json& value,
                              std::string_view expected) {
  base::reject(cat(path, "[", index, "]"), "wrong value",
               value.is_structured() ? value.type_name() : base::printable(value.dump(), 40),
               expected);
}

std::vector<std::int32_t> ids_of(const Json& array, const std::string& path,
                                 std::size_t max_items) {
  std::vector<std::int32_t> out;
  for (const Json& value : checked_array(array, path, max_items)) {
    // Negative numbers are kept as signed integers by the parser, so "unsigned" means a plain id.
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > INT32_MAX)
      reject_item(path, out.size(), value, "a token id");
    out.push_back(value.get<std::int32_t>());
  }
  return out;
}

}  // namespace

const Json& read_array(JsonObject& object, std::string_view key, std::size_t max_items) {
  return checked_array(object.get(key), object.path_of(key), max_items);
}

std::vector<std::string> read_strings(JsonObject& object, std::string_view key,
                                      std::size_t max_items) {
  std::vector<std::string> out;
  for (const Json& value : read_array(object, key, max_items)) {
    if (!value.is_string()) reject_item(object.path_of(key), out.size(), value, "a string");
    out.push_back(value.get<std::string>());
  }
  return out;
}

std::vector<std::int32_t> read_ids(JsonObject& object, std::string_view key,
                                   std::size_t max_items) {
  return ids_of(object.get(key), object.path_of(key), max_items);
}

std::vector<std::vector<std::int32_t>> read_id_lists(JsonObject& object, std::string_view key,
                                                     std::size_t max_items) {
  std::vector<std::vector<std::int32_t>> out;
  for (const Json& value : read_array(object, key, max_items))
    out.push_back(ids_of(value, cat(object.path_of(key), "[", out.size(), "]"), max_items));
  return out;
}

std::vector<float> read_floats(JsonObject& object, std::string_view key, std::size_t max_items) {
  std::vector<float> out;
  for (const Json& value : read_array(object, key, max_items)) {
    const double number = value.is_number() ? value.get<double>() : NAN;
    const float rounded = static_cast<float>(number);
    if (!std::isfinite(rounded))
      reject_item(object.path_of(key), out.size(), value, "a finite float32");
    out.push_back(rounded);
  }
  return out;
}

}  // namespace quern::contract
