// What stands for text without a token: its bytes, the unknown token, or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/tokenizer_tables.hpp"

namespace quern::text {

struct Unknown {
  std::optional<std::int32_t> id;  // absent: the text is dropped
  bool byte_fallback = false;
};

// The ids of all bytes of `text`; false, and nothing appended, when one byte has no token.
bool append_byte_ids(const TokenizerTables& tables, std::string_view text,
                     std::vector<std::int32_t>& out);

// Bytes where that is wanted and possible, else the unknown id.
void append_unknown(const TokenizerTables& tables, const Unknown& unknown, std::string_view text,
                    std::vector<std::int32_t>& out);

}  // namespace quern::text
