// Chat formats known by name, as Jinja of our own (models/chat): for checkpoints that come without
// a template and for --chat-template NAME.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::chat {

std::string builtin_template(std::string_view name);  // "" for an unknown name
std::vector<std::string_view> builtin_names();

}  // namespace quern::chat
