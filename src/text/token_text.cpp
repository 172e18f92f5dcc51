#include "text/token_text.hpp"

#include <optional>
#include <string_view>

namespace quern::text {

namespace {

std::string decoded(const Decoder& decoder, std::initializer_list<std::string_view> tokens) {
  Decoder::Stream stream(decoder);
  std::string text;
  for (const std::string_view token : tokens) text += stream.push(token);
  return text += stream.finish();
}

std::optional<unsigned> digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  return std::nullopt;
}

std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const auto high = digit_of(token[3]), low = digit_of(token[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<char>(*high * 16 + *low);
}

// A token is decoded between two others; what these are without it is taken off.
constexpr std::string_view kAnchor = "a";

}  // namespace

TokenText::TokenText(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  const Decoder& decoder = tokenizer.decoder();
  has_byte_tokens_ = decoded(decoder, {"<0xC3>", "<0xA9>"}) == "\xC3\xA9";
  before_ = decoded(decoder, {kAnchor});
  const std::string two = decoded(decoder, {kAnchor, kAnchor});
  if (two.starts_with(before_)) behind_ = two.substr(before_.size());
}

std::string TokenText::of(std::int32_t id) const {
  if (!tokenizer_.has_text(id)) return {};
  const std::string_view token = tokenizer_.token_bytes(id);
  if (const auto byte = has_byte_tokens_ ? byte_of(token) : std::nullopt)
    return std::string(1, *byte);
  std::string text = decoded(tokenizer_.decoder(), {kAnchor, token, kAnchor});
  if (text.starts_with(before_)) text.erase(0, before_.size());
  if (text.ends_with(behind_)) text.resize(text.size() - behind_.size());
  return text;
}

std::vector<std::string> TokenText::all(bool skip_special) const {
  std::vector<std::string> texts(tokenizer_.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    if (!(skip_special && tokenizer_.is_special(id))) texts[i] = of(id);
  }
  return texts;
}

}  // namespace quern::text
