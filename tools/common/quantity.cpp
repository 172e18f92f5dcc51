#include "quantity.hpp"

#include <cmath>
#include <cstdlib>
#include <string_view>

#include "base/binary_power.hpp"
#include "base/strings.hpp"

namespace quern::tool {

std::optional<double> parse_quantity(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  std::string_view rest(end);
  const std::uint64_t power = base::take_binary_power(rest);
  if (power > 1 && (rest == "iB" || rest == "B")) rest = {};
  if (!rest.empty()) return std::nullopt;
  return number * static_cast<double>(power);
}

CLI::Validator count_range(std::int64_t low, std::int64_t high) {
  return CLI::Validator(
      [=](std::string& text) {
        const std::optional<double> value = parse_quantity(text);
        const bool whole = value && std::trunc(*value) == *value;
        const bool inside = whole && *value >= static_cast<double>(low) && *value <= static_cast<double>(high);
        if (!inside)
          return base::cat(whole ? "out of range" : "not a whole number", " (got \"", base::printable(text, 40),
                           "\", expected ", low, " to ", high, ", k, M and G are powers of 1,024)");
        text = base::cat(static_cast<std::int64_t>(*value));
        return std::string();
      },
      base::cat("COUNT in [", low, " - ", high, "]"));
}

}  // namespace quern::tool
