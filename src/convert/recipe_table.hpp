// The recipes built into the program (cmake/embed_recipes.cmake makes the table from models/*.json).
#pragma once

#include <cstddef>

namespace quern::convert {

struct EmbeddedRecipe {
  const char* name;   // file name without .json
  const char* text;
};
extern const EmbeddedRecipe kEmbeddedRecipes[];
extern const std::size_t kEmbeddedRecipeCount;

}  // namespace quern::convert
