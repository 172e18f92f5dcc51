// What a model writes, made safe for a terminal; pipes and files get the bytes unchanged.
#pragma once

#include <string>
#include <string_view>

namespace quern::tool {

bool stdout_is_terminal();
bool stderr_is_terminal();

// Control and direction-changing characters as \xNN; line ends and tabs stay. Complete UTF-8 in, as
// text::StreamDecoder gives it, so no sequence hides across two calls.
std::string terminal_safe(std::string_view text);

// Writes model text to standard output at once: safe for a terminal, unchanged otherwise.
// An environment error when standard output cannot be written.
void write_model_text(std::string_view text);

}  // namespace quern::tool
