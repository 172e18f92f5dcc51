// JSON whose integers may have any number of digits, as Python reads them.
#pragma once

#include "base/json_reader.hpp"

namespace quern::base {

// As parse_json(), but an integer that does not fit in 64 bits with a sign is a binary value of its digits (JSON text
// gives no other binary values). At most 4300 digits, Python's limit.
Json parse_json_of_any_integers(std::string_view text, std::string_view where);

}  // namespace quern::base
