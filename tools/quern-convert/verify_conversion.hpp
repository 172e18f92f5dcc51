// --verify: the logits of the written model against those of its source in f32.
#pragma once

#include <filesystem>
#include <ostream>

#include "convert/convert.hpp"

namespace quern::tool {

// Converts the source once more to f32 in a temporary directory beside the target, runs a fixed
// prompt through both, prints max |difference|, KL divergence and argmax agreement per position.
// False when the written model does not follow its source.
bool verify_conversion(std::ostream& out, const std::filesystem::path& source,
                       const std::filesystem::path& target, const convert::ConvertOptions& options);

}  // namespace quern::tool
