#include "text/step_spelling.hpp"

#include <algorithm>

namespace quern::text {

namespace {

constexpr std::string_view kSeparators =
    "/|#!~@%&=;:,^+*$\"'`<>()[]{}0123456789abcdefghijklmnopqrstuvwxyz"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

}  // namespace

std::string spell_step(std::string_view name, const std::vector<std::string_view>& fields) {
  for (const char separator : kSeparators) {
    const bool used = std::any_of(fields.begin(), fields.end(), [&](std::string_view field) {
      return field.find(separator) != std::string_view::npos;
    });
    if (used) continue;
    std::string out(name);
    out += separator;
    for (const std::string_view field : fields) (out += field) += separator;
    return out;
  }
  return {};
}

std::optional<std::vector<std::string>> step_fields(std::string_view step, std::string_view name,
                                                    std::size_t count) {
  if (!step.starts_with(name) || step.size() < name.size() + 2) return std::nullopt;
  const char separator = step[name.size()];
  if (kSeparators.find(separator) == std::string_view::npos) return std::nullopt;
  std::vector<std::string> fields;
  std::string_view rest = step.substr(name.size() + 1);
  while (!rest.empty()) {
    const std::size_t end = rest.find(separator);
    if (end == std::string_view::npos) return std::nullopt;
    fields.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  if (fields.size() != count) return std::nullopt;
  return fields;
}

std::optional<std::string> step_text(std::string_view step, std::string_view name) {
  if (!step.starts_with(name) || step.size() <= name.size() || step[name.size()] != ':')
    return std::nullopt;
  return std::string(step.substr(name.size() + 1));
}

}  // namespace quern::text
