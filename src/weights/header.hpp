// The 128 bytes at the start of model.quern, from untrusted bytes.
#pragma once

#include <string_view>

#include "base/bytes.hpp"
#include "weights/layout.hpp"

namespace quern::weights {

// Magic (with a hint for known foreign files), endianness, version, checksum, length, and where the
// directory lies; an input error otherwise.
FileHeader parse_header(base::Bytes file, std::string_view where);

}  // namespace quern::weights
