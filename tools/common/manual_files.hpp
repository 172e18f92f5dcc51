// Manuals and completions as files, in the folders that an installation has: man1/, bash/, zsh/, fish/.
#pragma once

#include <filesystem>

#include "manual.hpp"

namespace quern::tool {

void write_manuals(const std::filesystem::path& folder, const ProgramText& program);
// One of them as text; for man and markdown `command` says which ("": the overview, or all).
std::string manual_text(ManualFormat format, const ProgramText& program, const std::string& command);

}  // namespace quern::tool
