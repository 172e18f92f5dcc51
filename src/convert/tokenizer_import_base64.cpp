#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_parts.hpp"

namespace quern::convert {

namespace {

// Six bits of a digit; -1 for other characters.
int bits_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

std::string decode_base64(std::string_view text, std::string_view where) {
  std::string_view digits = text;
  while (digits.ends_with('=') && text.size() - digits.size() < 2) digits.remove_suffix(1);
  std::string out;
  out.reserve(digits.size() * 3 / 4);
  unsigned held = 0, bits = 0;
  for (const char c : digits) {
    const int value = bits_of(c);
    if (value < 0) base::reject(where, "not base64", base::printable(std::string(1, c)));
    held = held << 6 | static_cast<unsigned>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>(held >> bits & 0xFF);
  }
  if (digits.size() % 4 == 1) base::reject(where, "base64 is cut off");
  return out;
}

}  // namespace quern::convert
