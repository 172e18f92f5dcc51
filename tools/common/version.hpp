// --version of both programs: build, instruction sets, libraries.
#pragma once

#include <ostream>

namespace quern::tool {

const char* version_number();  // "0.1.0"
void print_version(std::ostream& out, const char* program);

}  // namespace quern::tool
