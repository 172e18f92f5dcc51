// The tokens that end what DRY looks back over, from texts: "\n", ":", ... Once per vocabulary.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sampling/options.hpp"

namespace quern::sampling {

// "\n", ":", "\"" and "*", as everywhere.
std::vector<std::string> default_dry_breakers();

// texts: the bytes that each id adds to a text. encode: a text as ids, without special ones. Every
// token that holds a breaker is one; a token that ends as a breaker begins is one where the tokens
// of the rest follow (at most 20). Breakers are cut to 40 bytes; empty ones are none.
std::vector<DryBreaker> dry_breakers(
    std::span<const std::string> breakers, std::span<const std::string> texts,
    const std::function<std::vector<std::int32_t>(std::string_view)>& encode);

}  // namespace quern::sampling
