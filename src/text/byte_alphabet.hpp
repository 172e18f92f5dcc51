// The printable alphabet in which byte-level vocabularies are spelled: each byte is one character
// (33-126, 161-172, 174-255 stand for themselves, the other 68 bytes for U+0100 and up, in order).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quern::text {

std::string bytes_to_alphabet(std::string_view bytes);

// The bytes that `spelling` stands for; nothing when a character is outside the alphabet.
std::optional<std::string> alphabet_to_bytes(std::string_view spelling);

}  // namespace quern::text
