#include "text/stream_decoder.hpp"

#include "text/unicode.hpp"

namespace quern::text {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The maximal subpart at `at`: how many bytes of a well-formed character lie there before it breaks
// (Unicode table 3-7), at least 1. `open` says that the text ended inside the character.
struct Subpart {
  std::size_t bytes;
  bool open;
};

Subpart maximal_subpart(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  std::size_t need = 0;
  unsigned low = 0x80, high = 0xBF;  // bounds of the second byte
  if (lead >= 0xC2 && lead <= 0xDF) need = 2;
  if (lead >= 0xE0 && lead <= 0xEF) need = 3;
  if (lead >= 0xF0 && lead <= 0xF4) need = 4;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  if (need == 0) return {1, false};
  std::size_t bytes = 1;
  for (; bytes < need && at + bytes < text.size(); ++bytes) {
    const auto byte = static_cast<unsigned char>(text[at + bytes]);
    if (byte < low || byte > high) return {bytes, false};
    low = 0x80, high = 0xBF;
  }
  return {bytes, bytes < need};
}

// Appends the valid characters of `text` to out, U+FFFD for each broken subpart; returns where an
// unfinished character starts (text.size() when there is none).
std::size_t append_lossy(std::string& out, std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t valid = valid_utf8_prefix(text, at);
    out.append(text, at, valid);
    at += valid;
    if (at == text.size()) break;
    const Subpart part = maximal_subpart(text, at);
    if (part.open) return at;
    out.append(kReplacement);
    at += part.bytes;
  }
  return at;
}

}  // namespace

std::string StreamDecoder::push(std::string_view token_bytes) {
  pending_.append(token_bytes);
  std::string out;
  const std::size_t rest = append_lossy(out, pending_);
  pending_.erase(0, rest);
  return out;
}

std::string StreamDecoder::finish() {
  const bool open = !pending_.empty();
  pending_.clear();
  return open ? std::string(kReplacement) : std::string();
}

std::string utf8_lossy(std::string_view bytes) {
  StreamDecoder decoder;
  std::string out = decoder.push(bytes);
  out += decoder.finish();
  return out;
}

bool is_valid_utf8(std::string_view bytes) {
  return valid_utf8_prefix(bytes, 0) == bytes.size();
}

}  // namespace quern::text
