// --version of both programs: build, instruction sets, libraries.
#pragma once

#include <ostream>

namespace quern::tool {

void print_version(std::ostream& out, const char* program);

}  // namespace quern::tool
