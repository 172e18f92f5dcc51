// The most probable of a row of logits, for people and for JSON.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace quern::tool {

struct Ranked {
  std::size_t index;
  double probability;  // of Activation::none: the number itself
};

enum class Activation { softmax, sigmoid, none };

// The k best, best first (equal ones by index). Input error of `where` when a logit is not finite.
std::vector<Ranked> rank(std::span<const float> logits, std::size_t k, Activation activation,
                         const std::string& where);

}  // namespace quern::tool
