// --version of both programs: build, instruction sets, libraries.
#pragma once

#include <ostream>

namespace quern::tool {

const char* version();  // "0.1.0"
const char* commit();   // "3b607da", with "+" when files differ from it; "unknown" outside a clone

void print_version(std::ostream& out, const char* program);

}  // namespace quern::tool
