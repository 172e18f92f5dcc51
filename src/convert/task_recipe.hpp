// Classes of a family beside its language model: classifiers of texts and of tokens, finders of
// answers, the bare model (models/_tasks.json). They are the family's recipe with another head.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "convert/recipe.hpp"

namespace quern::convert {

// The recipe of a class that no recipe names; nullopt when the class is none of these, or the
// model_type's family is of another kind.
std::optional<Recipe> task_recipe(const std::vector<Recipe>& recipes, std::string_view class_name,
                                  std::string_view model_type);

}  // namespace quern::convert
