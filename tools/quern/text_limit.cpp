#include "text_limit.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kBytesPerToken = 256, kMinTextBytes = std::size_t{1} << 20;

}  // namespace

std::size_t most_text_bytes(std::size_t max_tokens) {
  return std::max(kMinTextBytes, std::min(max_tokens, SIZE_MAX / kBytesPerToken) * kBytesPerToken);
}

void check_text_bytes(std::string_view text, const std::string& where, std::size_t max_tokens) {
  const std::size_t most = most_text_bytes(max_tokens);
  if (text.size() > most)
    base::reject(where, "too long a text", base::cat(text.size(), " bytes"),
                 base::cat("at most ", most, " bytes for a context of ", max_tokens, " tokens"));
}

std::string_view cut_text(std::string_view text, std::size_t max_tokens) {
  if (text.size() <= most_text_bytes(max_tokens)) return text;
  text = text.substr(0, most_text_bytes(max_tokens));
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.remove_suffix(1);
  if (!text.empty() && (static_cast<unsigned char>(text.back()) & 0x80) != 0) text.remove_suffix(1);
  return text;
}

}  // namespace quern::tool
