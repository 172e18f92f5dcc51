// The tables of quern-convert: what was (or would be) written, and which architectures are known.
#pragma once

#include <ostream>

#include "convert/convert.hpp"

namespace quern::tool {

// measured: the errors of stored values are known (not in a dry run).
void print_roles(std::ostream& out, const convert::ConvertReport& report, bool measured);
// Every tensor with shape, format, bytes.
void print_plan(std::ostream& out, const convert::ConvertReport& report);
void print_supported_models(std::ostream& out);

}  // namespace quern::tool
