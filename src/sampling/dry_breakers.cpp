#include "sampling/dry_breakers.hpp"

#include <algorithm>

namespace quern::sampling {

namespace {

constexpr std::size_t kMostBytes = 40, kMostTail = 20;

}  // namespace

std::vector<std::string> default_dry_breakers() {
  return {"\n", ":", "\"", "*"};
}

std::vector<DryBreaker> dry_breakers(
    std::span<const std::string> breakers, std::span<const std::string> texts,
    const std::function<std::vector<std::int32_t>(std::string_view)>& encode) {
  std::vector<DryBreaker> found;
  for (const std::string& whole : breakers) {
    const std::string_view breaker = std::string_view(whole).substr(0, kMostBytes);
    if (breaker.empty()) continue;
    std::vector<std::vector<std::int32_t>> tails(breaker.size());  // by bytes that are there
    for (std::size_t n = 1; n < breaker.size(); ++n) {
      tails[n] = encode(breaker.substr(n));
      tails[n].resize(std::min(tails[n].size(), kMostTail));
    }
    for (std::size_t id = 0; id < texts.size(); ++id) {
      const std::string_view text = texts[id];
      const auto head = static_cast<std::int32_t>(id);
      if (text.find(breaker) != std::string_view::npos) {
        found.push_back({head, {}});
        continue;
      }
      for (std::size_t n = 1; n < breaker.size(); ++n)
        if (text.ends_with(breaker.substr(0, n))) found.push_back({head, tails[n]});
    }
  }
  return found;
}

}  // namespace quern::sampling
