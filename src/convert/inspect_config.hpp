// A contract from a bare configuration, without tensors: what `quern inspect --config` shows.
#pragma once

#include <filesystem>
#include <string_view>

#include "contract/contract.hpp"

namespace quern::convert {

// config: path of a Hugging Face config.json. recipe_file: a recipe beside the built-in ones, or "". arch_as: the
// recipe to use whatever the configuration says, or "". Counts are by formula.
contract::Contract inspect_config(const std::filesystem::path& config, std::string_view recipe_file,
                                  std::string_view arch_as);

}  // namespace quern::convert
