// What the expressions of one recipe may cost: a recipe is text from anywhere, evaluated once per layer, so its work
// is a product of two numbers that a file chooses. Not here: the limits on the files themselves.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json_reader.hpp"

namespace quern::convert {

class Fuel {
 public:
  // A model of 1000 layers with every op written per layer takes about a million of each: 50 million steps are some
  // seconds, 4 million values some 300 MB.
  static constexpr std::uint64_t kMaxSteps = 50'000'000;
  static constexpr std::uint64_t kMaxValues = 4'000'000;
  explicit Fuel(std::uint64_t steps = kMaxSteps, std::uint64_t values = kMaxValues)
      : steps_(steps), values_(values), max_steps_(steps), max_values_(values) {}

  // One step: an expression or a part of one, eight characters to parse, a value or 32 bytes of a text to copy.
  // Input errors of `where` when the fuel is used up.
  void spend(std::uint64_t steps, std::string_view where);
  // Values (as above) that stay in what is made of the recipe.
  void keep(std::uint64_t values, std::string_view where);

 private:
  std::uint64_t steps_, values_;  // left
  std::uint64_t max_steps_, max_values_;
};

// Steps to copy a value.
std::uint64_t weight_of(const base::Json& value);

}  // namespace quern::convert
