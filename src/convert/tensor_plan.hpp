// Names of a recipe -> the source tensor of each tensor of the contract. Every expected tensor must
// be found with its shape, every source tensor used or on the ignore list.
// Not here: number formats (policy.hpp), reading (transform.hpp).
#pragma once

#include <optional>
#include <string_view>

#include "checkpoint/checkpoint.hpp"
#include "convert/expression.hpp"
#include "convert/recipe.hpp"
#include "convert/tensor_names.hpp"

namespace quern::convert {

// Whether the logits use the token embedding: both tensors present and different -> not tied,
// otherwise the one that is stored serves both. nullopt: the recipe has no head tensor.
std::optional<bool> tied_by_tensors(const NameMap& names, const Environment& values);

// Fills tensors, ignored and notices of `resolved` for its contract.
void plan_tensors(const NameMap& names, const Environment& values,
                  const checkpoint::Checkpoint& checkpoint, Resolved& resolved);

}  // namespace quern::convert
