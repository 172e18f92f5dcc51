// The KV cache's number types as users spell them.
// Not here: what they do (kernels/attention_types.hpp), other spellings the command line takes.
#pragma once

#include <array>
#include <string_view>

namespace quern::contract {

// In the order of kernels::CacheType, whose numbers lie in files.
inline constexpr std::array<std::string_view, 7> kCacheTypeNames = {
    "f32", "bf16", "f16", "int8", "fp8_e4m3", "fp8_e5m2", "int4"};

}  // namespace quern::contract
