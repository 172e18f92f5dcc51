#include "text/byte_alphabet.hpp"

#include <array>
#include <cstdint>

#include "text/unicode.hpp"

namespace quern::text {

namespace {

constexpr std::uint32_t kFirstMoved = 0x100;
constexpr std::uint32_t kMovedBytes = 68;

struct Alphabet {
  std::array<std::uint32_t, 256> code_of_byte{};
  std::array<std::int16_t, kFirstMoved + kMovedBytes> byte_of_code{};

  Alphabet() {
    byte_of_code.fill(-1);
    std::uint32_t moved = kFirstMoved;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const bool stays = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      const std::uint32_t code = stays ? byte : moved++;
      code_of_byte[byte] = code;
      byte_of_code[code] = static_cast<std::int16_t>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet made;
  return made;
}

}  // namespace

std::string bytes_to_alphabet(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes)
    append_utf8(out, alphabet().code_of_byte[static_cast<unsigned char>(c)]);
  return out;
}

std::optional<std::string> alphabet_to_bytes(std::string_view spelling) {
  std::string out;
  out.reserve(spelling.size());
  for (std::size_t at = 0; at < spelling.size();) {
    const Char c = decode_char(spelling, at);
    if (c.code >= alphabet().byte_of_code.size() || alphabet().byte_of_code[c.code] < 0)
      return std::nullopt;
    out.push_back(static_cast<char>(alphabet().byte_of_code[c.code]));
    at += c.bytes;
  }
  return out;
}

}  // namespace quern::text
