#include "batch/request_fields.hpp"

#include "base/strings.hpp"

namespace quern::batch {

namespace {

base::Json without_nulls(const base::Json& object, const std::string& where) {
  if (!object.is_object())
    throw ItemError("invalid_request", where, base::cat("wrong kind of value (got ", object.type_name(), ", expected object)"));
  base::Json out = base::Json::object();
  auto& members = out.get_ref<base::Json::object_t&>();
  for (const auto& [key, value] : object.items())
    if (!value.is_null()) members.Container::emplace_back(key, value);
  return out;
}

}  // namespace

Fields::Fields(const base::Json& object, std::string where)
    : json_(without_nulls(object, where)), where_(std::move(where)), object_(json_, where_) {}

void Fields::wrong(std::string_view key, std::string_view what) const {
  throw ItemError("invalid_request", base::cat(where_, ".", base::printable(key, 80)), what);
}

void Fields::unsupported(std::string_view key, std::string_view why) const {
  throw ItemError("unsupported_field", base::cat(where_, ".", base::printable(key, 80)), why);
}

std::optional<double> Fields::number(std::string_view key, double low, double high) {
  const base::Json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) wrong(key, base::cat("is no number (got ", value->type_name(), ")"));
  const double number = value->get<double>();
  if (!(number >= low && number <= high))
    wrong(key, base::cat("is out of range (got ", number, ", expected ", low, " to ", high, ")"));
  return number;
}

std::optional<std::int64_t> Fields::integer(std::string_view key, std::int64_t low, std::int64_t high) {
  const base::Json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::string range = base::cat(", expected a whole number, ", low, " to ", high, ")");
  if (!value->is_number_integer()) wrong(key, base::cat("is no whole number (got ", base::printable(value->dump(), 40), range));
  const bool too_big = value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  if (too_big || value->get<std::int64_t>() < low || value->get<std::int64_t>() > high)
    wrong(key, base::cat("is out of range (got ", value->dump(), range));
  return value->get<std::int64_t>();
}

std::optional<std::size_t> Fields::count(std::string_view key, std::size_t low, std::size_t high) {
  const auto value = integer(key, static_cast<std::int64_t>(low), static_cast<std::int64_t>(high));
  return value ? std::make_optional(static_cast<std::size_t>(*value)) : std::nullopt;
}

std::optional<bool> Fields::boolean(std::string_view key) {
  const base::Json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) wrong(key, base::cat("is neither true nor false (got ", value->type_name(), ")"));
  return value->get<bool>();
}

std::optional<std::string> Fields::text(std::string_view key) {
  const base::Json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) wrong(key, base::cat("is no string (got ", value->type_name(), ")"));
  return value->get<std::string>();
}

std::vector<std::string> Fields::texts(std::string_view key, std::size_t most) {
  const base::Json* const value = find(key);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) wrong(key, base::cat("is no string or list of strings (got ", value->type_name(), ")"));
  if (value->size() > most) wrong(key, base::cat("has ", value->size(), " entries, at most ", most));
  std::vector<std::string> out;
  for (const base::Json& item : *value) {
    if (!item.is_string()) wrong(key, base::cat("holds something that is no string (got ", item.type_name(), ")"));
    out.push_back(item.get<std::string>());
  }
  return out;
}

std::int32_t token_id_of(const base::Json& value, const std::string& where) {
  if (!value.is_number_integer() || value < 0 || value > INT32_MAX)
    throw ItemError("invalid_request", where, base::cat("is no token id (got ", base::printable(value.dump(), 40), ")"));
  return value.get<std::int32_t>();
}

std::vector<std::int32_t> Fields::ids(std::string_view key) {
  const base::Json* const value = find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) wrong(key, base::cat("is no list of token ids (got ", value->type_name(), ")"));
  std::vector<std::int32_t> out;
  for (const base::Json& item : *value) out.push_back(token_id_of(item, base::cat(where_, ".", key)));
  return out;
}

void Fields::ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) find(key);
}

void Fields::only(std::string_view key, const base::Json& value, std::string_view why) {
  const base::Json* const found = find(key);
  if (found != nullptr && *found != value) unsupported(key, why);
}

void Fields::finish() {
  try {
    object_.finish();
  } catch (const base::Error& error) {
    throw ItemError("unsupported_field", error.where(), "is no field that is known here (docs/BATCH.md)");
  }
}

}  // namespace quern::batch
