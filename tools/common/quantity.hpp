// Numbers as people type sizes: "8192", "8k", "1.5M", "16GiB", "7e9"; k, M, G and T are powers of 1,024. Lists and
// ranges of them are bench/sweep.hpp's.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace quern::tool {

std::optional<double> parse_quantity(const std::string& text);

// For Option::transform(): a whole number in [low, high] typed as a quantity, which the option then gets in digits.
CLI::Validator count_range(std::int64_t low, std::int64_t high);

}  // namespace quern::tool
