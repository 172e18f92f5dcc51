// Cache blocks as bytes to store: their version, and slots made empty. The layout itself is described in
// attention_types.hpp; this is apart from it because no kernel needs it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention_types.hpp"

namespace quern::kernels {

inline constexpr std::uint32_t kCacheLayoutVersion = 1;  // moves when the bytes of a block change their meaning

// Zeroes the slots [first, kBlockTokens) of a block: nothing of the tokens that were there is left.
void clear_cache_slots(const CacheLayout& layout, std::byte* block, std::size_t first);

}  // namespace quern::kernels
