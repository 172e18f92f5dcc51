// --logit-bias: which token, by id or by text, and how much.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "model_options.hpp"

namespace quern::tool {

// "15043+1.5", "15043-inf", "hello-2", "\"a+b\"+1" -> id and bias. Usage errors for another form, an
// id out of range, and a text that is no single token (they quote its ids).
std::pair<std::int32_t, float> token_bias(const LoadedModel& loaded, std::string_view word);

}  // namespace quern::tool
