#include "token_bias.hpp"

#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "escapes.hpp"

namespace quern::tool {

namespace {

constexpr const char* kOption = "--logit-bias";

std::optional<float> bias_of(std::string_view text) {
  const std::string number(text);
  if (number == "-inf" || number == "-infinity") return -INFINITY;
  if (number.find_first_not_of("0123456789.eE+-") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const float value = std::strtof(number.c_str(), &end);
  if (number.size() < 2 || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

struct Parts {
  std::string_view token;
  float bias;
};

// Digits and the rest; else a quoted text and the rest; else what stands before the last sign that
// a number follows.
std::optional<Parts> parts_of(std::string_view word) {
  const auto split = [&](std::size_t at) -> std::optional<Parts> {
    if (at == 0 || at >= word.size() || (word[at] != '+' && word[at] != '-')) return std::nullopt;
    const auto bias = bias_of(word.substr(at));
    if (!bias) return std::nullopt;
    return Parts{word.substr(0, at), *bias};
  };
  if (const auto parts = split(word.find_first_not_of("0123456789"))) return parts;
  if (word.starts_with('"'))
    if (const auto parts = split(word.rfind('"') + 1); parts && parts->token.size() >= 2) {
      if (parts->token.size() == 2) return std::nullopt;  // an empty text
      return Parts{parts->token.substr(1, parts->token.size() - 2), parts->bias};
    }
  for (std::size_t at = word.size(); at-- > 1;)
    if (const auto parts = split(at)) return parts;
  return std::nullopt;
}

}  // namespace

std::pair<std::int32_t, float> token_bias(const LoadedModel& loaded, std::string_view word) {
  const auto parts = parts_of(word);
  if (!parts)
    base::usage_error(kOption, base::cat("\"", base::printable(word, 60),
                                         "\" is not TOKEN+BIAS or TOKEN-BIAS (-inf: never)"));
  const std::size_t vocab_size = loaded.model->contract.vocab_size;
  if (parts->token.find_first_not_of("0123456789") == std::string_view::npos &&
      !word.starts_with('"')) {
    const std::string digits(parts->token);
    const std::uint64_t id = digits.size() > 12 ? UINT64_MAX : std::strtoull(digits.c_str(), nullptr, 10);
    if (id >= vocab_size)
      base::usage_error(kOption, base::cat("token id ", digits, " is not in 0 to ", vocab_size - 1));
    return {static_cast<std::int32_t>(id), parts->bias};
  }
  const std::string text = unescaped(parts->token);
  const auto ids = need_tokenizer(loaded).encode(text, {.add_special = false});
  if (ids.size() == 1) return {ids.front(), parts->bias};
  std::string list;
  for (std::size_t i = 0; i < std::min<std::size_t>(ids.size(), 8); ++i)
    list += base::cat(i == 0 ? "" : " ", ids[i]);
  base::usage_error(kOption, base::cat("\"", base::printable(text, 40), "\" is ", ids.size(),
                                       " tokens (", list, ids.size() > 8 ? " ..." : "",
                                       "): bias them by their ids, or forbid the text with --ban"));
}

}  // namespace quern::tool
