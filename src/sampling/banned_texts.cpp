#include "sampling/banned_texts.hpp"

#include <array>
#include <limits>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::sampling {

namespace {

constexpr std::size_t kMostTexts = 10000, kMostBytes = std::size_t{1} << 20;

}  // namespace

// `shorter` is the failure function of Knuth, Morris and Pratt.
BannedTexts::Banned BannedTexts::prepare(const std::string& text) {
  Banned banned;
  banned.text = text;
  banned.shorter.assign(text.size() + 1, 0);
  for (std::size_t n = 2; n <= text.size(); ++n) {
    std::uint32_t k = banned.shorter[n - 1];
    while (k > 0 && text[k] != text[n - 1]) k = banned.shorter[k];
    banned.shorter[n] = text[k] == text[n - 1] ? k + 1 : 0;
  }
  banned.completing.resize(text.size());
  return banned;
}

BannedTexts::BannedTexts(std::span<const std::string> banned, std::vector<std::string> texts)
    : texts_(std::move(texts)) {
  std::size_t bytes = 0;
  for (const std::string& text : banned) {
    if (text.empty()) base::usage_error("--ban", "a banned text is empty");
    bytes += text.size();
    if (banned.size() > kMostTexts || bytes > kMostBytes)
      base::usage_error("--ban", base::cat("more than ", kMostTexts, " texts or ", kMostBytes, " bytes"));
    banned_.push_back(prepare(text));
  }
  find_completing();
}

void BannedTexts::find_completing() {
  std::array<std::vector<std::int32_t>, 256> by_first_byte;
  for (std::size_t id = 0; id < texts_.size(); ++id)
    if (!texts_[id].empty())
      by_first_byte[static_cast<unsigned char>(texts_[id][0])].push_back(
          static_cast<std::int32_t>(id));
  for (Banned& banned : banned_) {
    for (std::size_t id = 0; id < texts_.size(); ++id)
      if (texts_[id].find(banned.text) != std::string::npos)
        banned.completing[0].push_back(static_cast<std::int32_t>(id));
    for (std::size_t n = 1; n < banned.text.size(); ++n) {
      const std::string_view rest = std::string_view(banned.text).substr(n);
      for (const std::int32_t id : by_first_byte[static_cast<unsigned char>(rest[0])])
        if (texts_[static_cast<std::size_t>(id)].starts_with(rest))
          banned.completing[n].push_back(id);
    }
  }
}

void BannedTexts::restart() {
  for (Banned& banned : banned_) banned.matched = 0;
}

void BannedTexts::accept(std::int32_t id) {
  if (id < 0 || static_cast<std::size_t>(id) >= texts_.size()) return;
  for (Banned& banned : banned_) {
    std::size_t n = banned.matched;
    for (const char byte : texts_[static_cast<std::size_t>(id)]) {
      if (n == banned.text.size()) n = banned.shorter[n];
      while (n > 0 && banned.text[n] != byte) n = banned.shorter[n];
      if (banned.text[n] == byte) ++n;
    }
    banned.matched = n == banned.text.size() ? banned.shorter[n] : n;
  }
}

void BannedTexts::apply(std::span<float> row) const {
  const auto forbid = [&](const std::vector<std::int32_t>& ids) {
    for (const std::int32_t id : ids)
      if (static_cast<std::size_t>(id) < row.size())
        row[static_cast<std::size_t>(id)] = -std::numeric_limits<float>::infinity();
  };
  for (const Banned& banned : banned_) {
    forbid(banned.completing[0]);
    for (std::size_t n = banned.matched; n > 0; n = banned.shorter[n]) forbid(banned.completing[n]);
  }
}

}  // namespace quern::sampling
