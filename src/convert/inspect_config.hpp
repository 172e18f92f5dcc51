// What a bare configuration says without tensors: the contract that `quern inspect --config` shows, and whether its
// architecture is known.
#pragma once

#include <filesystem>
#include <string_view>

#include "contract/contract.hpp"

namespace quern::convert {

// config: path of a Hugging Face config.json. recipe_file: a recipe beside the built-in ones, or "". arch_as: the
// recipe to use whatever the configuration says, or "". Counts are by formula.
contract::Contract inspect_config(const std::filesystem::path& config, std::string_view recipe_file,
                                  std::string_view arch_as);

// An input error when the configuration names an architecture that no recipe reads. What is wrong with the
// configuration or the recipe file itself (unreadable, no JSON) is an error before that. Nothing is asked of a
// configuration that is not there or has neither `architectures` nor `model_type`.
void check_architecture(const std::filesystem::path& config, std::string_view recipe_file, std::string_view arch_as);

}  // namespace quern::convert
