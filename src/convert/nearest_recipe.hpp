// For an architecture that no recipe matches: the recipe that knows most of its configuration and
// of its tensors, and what it does not know.
#pragma once

#include <string>
#include <vector>

#include "convert/recipe.hpp"

namespace quern::convert {

// "parent (unknown to it: configuration keys a, b; tensors x, y, ... (3 more); by it: what it would say)"; "" when none is
// near.
std::string describe_nearest(const std::vector<Recipe>& recipes,
                             const checkpoint::Checkpoint& checkpoint);

}  // namespace quern::convert
