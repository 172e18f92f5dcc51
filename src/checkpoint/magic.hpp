// What kind of file some bytes are, by their first bytes alone.
#pragma once

#include "base/bytes.hpp"

namespace quern::checkpoint {

enum class FileMagic { unknown, gguf, pickle };

// pickle: a zip (torch.save) or a bare pickle. Their first eight bytes, read as a safetensors
// header length, are far above its limit, so the two cannot be confused.
inline FileMagic magic_of(base::Bytes bytes) {
  const std::string_view text = base::as_text(bytes.first(bytes.size() < 4 ? bytes.size() : 4));
  if (text == "GGUF") return FileMagic::gguf;
  if (text == "PK\x03\x04") return FileMagic::pickle;
  if (text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5)
    return FileMagic::pickle;
  return FileMagic::unknown;
}

}  // namespace quern::checkpoint
