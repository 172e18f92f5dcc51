#include "contract/json_printer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/strings.hpp"

namespace quern::contract {

using base::Json;

namespace {

constexpr std::size_t kColumns = 120;

// "1e-05" -> "1e-5", "2e+06" -> "2e6", "1" -> "1.0" (so that it reads back as a float).
std::string tidy(std::string text) {
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text.find('.') == std::string::npos ? text + ".0" : text;
  std::string exponent = text.substr(e + 1);
  const bool negative = exponent[0] == '-';
  exponent.erase(0, exponent.find_first_not_of("+-0"));
  return text.substr(0, e) + (negative ? "e-" : "e") + exponent;
}

std::string number_text(double value) {
  if (!std::isfinite(value)) base::reject("contract", "number is not finite");
  std::array<char, 64> buffer{};
  const double magnitude = std::fabs(value);
  const bool fixed = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e15);
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                    fixed ? std::chars_format::fixed : std::chars_format::scientific);
  return tidy(std::string(buffer.data(), result.ptr));
}

std::string string_text(const Json& value) {
  try {
    return value.dump();
  } catch (const Json::exception&) {
    base::reject("contract", "text is not UTF-8",
                 base::printable(value.get_ref<const std::string&>(), 60));
  }
}

std::string scalar_text(const Json& value) {
  if (value.is_number_float()) return number_text(value.get<double>());
  if (value.is_string()) return string_text(value);
  return value.dump();
}

bool is_number_array(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_number(); });
}

// Appends the one-line text; false as soon as it passes `limit` characters (0: no limit).
bool append_inline(const Json& value, std::size_t limit, std::string& out) {
  if (!value.is_structured()) {
    out += scalar_text(value);
    return limit == 0 || out.size() <= limit;
  }
  const bool object = value.is_object();
  if (value.empty()) {
    out += object ? "{}" : "[]";
    return true;
  }
  out += object ? "{ " : "[";
  bool first = true;
  for (const auto& item : value.items()) {
    if (!first) out += ", ";
    first = false;
    if (object) out += string_text(Json(item.key())) + ": ";
    if (!append_inline(item.value(), limit, out)) return false;
  }
  out += object ? " }" : "]";
  return limit == 0 || out.size() <= limit;
}

// Records of a list (branches, layer groups, added tokens) are lines of a table, however wide.
bool is_record(const Json& value) {
  return value.is_object() && std::none_of(value.begin(), value.end(),
                                           [](const Json& item) { return item.is_object(); });
}

// column: characters already on the line, so that the whole line stays inside kColumns.
void append(const Json& value, std::size_t indent, std::size_t column, bool item,
            std::string& out) {
  const bool one_line =
      !value.is_structured() || is_number_array(value) || (item && is_record(value));
  if (one_line || (indent > 0 && column + 1 < kColumns)) {
    std::string line;
    if (append_inline(value, one_line ? 0 : kColumns - 1 - column, line)) {
      out += line;
      return;
    }
  }
  const bool object = value.is_object();
  const std::string margin(indent + 2, ' ');
  out += object ? "{\n" : "[\n";
  std::size_t left = value.size();
  for (const auto& child : value.items()) {
    const std::string key = object ? string_text(Json(child.key())) + ": " : "";
    out += margin + key;
    append(child.value(), indent + 2, margin.size() + key.size(), !object, out);
    out += --left == 0 ? "\n" : ",\n";
  }
  out += std::string(indent, ' ') + (object ? "}" : "]");
}

}  // namespace

std::string print_json(const Json& value) {
  std::string out;
  append(value, 0, 0, false, out);
  return out + "\n";
}

std::string print_json_inline(const Json& value) {
  std::string out;
  append_inline(value, 0, out);
  return out;
}

Json json_float(float value) {
  if (!std::isfinite(value)) base::reject("contract", "number is not finite");
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  double shortest = 0;
  std::from_chars(buffer.data(), end, shortest);
  // Reading rounds decimal -> double -> float; should that ever miss, the double's own decimals
  // cannot.
  return static_cast<float>(shortest) == value ? Json(shortest) : Json(static_cast<double>(value));
}

Json json_plain_number(double value) {
  if (std::fabs(value) < 1e15 && value == std::floor(value) && !(value == 0 && std::signbit(value)))
    return Json(static_cast<std::int64_t>(value));
  return Json(value);
}

}  // namespace quern::contract
