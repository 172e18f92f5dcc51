#include "token_texts.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"

namespace quern::tool {

namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// "<0x0A>": a byte, which the decoder holds back until its run has ended.
std::optional<char> byte_of(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') return std::nullopt;
  const int high = hex_value(spelling[3]), low = hex_value(spelling[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

bool has_step(const contract::TokenizerDescription& description, std::string_view name) {
  return std::find(description.decoders.begin(), description.decoders.end(), name) != description.decoders.end();
}

}  // namespace

grammar::TokenTexts token_texts(const text::Tokenizer& tokenizer, const contract::TokenizerDescription& description,
                                std::size_t n_ids, std::vector<std::int32_t> ends) {
  grammar::TokenTexts out;
  out.texts.resize(n_ids);
  out.ends = std::move(ends);
  for (const contract::AddedToken& token : description.added)
    if (token.id >= 0 && static_cast<std::size_t>(token.id) < n_ids) out.spellings.emplace(token.content, token.id);
  const bool bytes = has_step(description, "byte_fallback") || has_step(description, "byte_runs");
  // In the middle of an answer: after a token that is there already.
  text::Decoder::Stream middle(tokenizer.decoder());
  if (middle.push("a").empty())
    base::reject("tokenizer", "structured output is not supported with this decoder: the text of a token depends on the next");
  for (std::size_t i = 0; i < n_ids && i < tokenizer.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    if (!tokenizer.has_text(id) || tokenizer.is_special(id)) continue;
    const std::string_view spelling = tokenizer.token_bytes(id);
    if (const auto byte = bytes ? byte_of(spelling) : std::nullopt) {
      out.texts[i] = std::string(1, *byte);
      continue;
    }
    out.texts[i] = middle.push(spelling);
    // Decoders change the front of an answer by white space only.
    if (!out.texts[i].starts_with(' ') && !spelling.starts_with(' ')) continue;
    text::Decoder::Stream alone(tokenizer.decoder());
    std::string first = alone.push(spelling);
    first += alone.finish();
    if (first != out.texts[i]) out.first.emplace_back(id, std::move(first));
  }
  return out;
}

}  // namespace quern::tool
