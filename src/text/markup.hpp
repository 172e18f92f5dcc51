// Which added tokens steer a model though no flag says so. Not here: which are found in a text (added_tokens.hpp).
#pragma once

#include <string_view>

namespace quern::text {

// "<think>", "<|User|>", "[INST]". Elements of HTML ("<table>", "</b>") are words of a text that has them; Gemma's
// vocabulary has tokens for these. "<s>" is both, and taken for markup.
bool looks_like_markup(std::string_view content);

}  // namespace quern::text
