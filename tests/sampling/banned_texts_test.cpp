// Banned texts never appear, whatever the cut into tokens; nothing else is forbidden.
#include "sampling/banned_texts.hpp"

#include <cmath>
#include <random>

#include "base/error.hpp"
#include "catch.hpp"
#include "sampling/dry_breakers.hpp"

namespace quern::tests {

using sampling::BannedTexts;

TEST_CASE("a token is forbidden exactly where it would complete a banned text", "[bans]") {
  std::mt19937 random(3);
  const auto text_of = [&](std::size_t most) {  // over two letters: overlaps of every kind
    std::string text;
    for (std::size_t n = random() % most + 1; n > 0; --n) text += random() % 2 != 0 ? 'a' : 'b';
    return text;
  };
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> banned, texts{"", "a", "b"};
    for (int i = 0; i < 3; ++i) banned.push_back(text_of(5) + text_of(3));
    for (int i = 0; i < 12; ++i) texts.push_back(text_of(4));
    BannedTexts bans(banned, texts);
    std::string answer;
    bans.restart();
    for (int step = 0; step < 60; ++step) {
      std::vector<float> row(texts.size() + 2, 0.0F);
      bans.apply(row);
      std::vector<std::int32_t> allowed;
      for (std::size_t id = 0; id < texts.size(); ++id) {
        const std::string next = answer + texts[id];
        bool holds = false;
        for (const std::string& ban : banned) holds = holds || next.find(ban) != std::string::npos;
        CHECK(holds == std::isinf(row[id]));
        if (!holds) allowed.push_back(static_cast<std::int32_t>(id));
      }
      const std::int32_t id = allowed[random() % allowed.size()];
      answer += texts[static_cast<std::size_t>(id)];
      bans.accept(id);
    }
    for (const std::string& ban : banned) CHECK(answer.find(ban) == std::string::npos);
    bans.restart();
    std::vector<float> row(texts.size(), 0.0F);
    bans.apply(row);
    CHECK_FALSE(std::isinf(row[0]));
  }
}

TEST_CASE("an empty banned text is refused", "[bans]") {
  const std::vector<std::string> empty{""};
  CHECK_THROWS_AS(BannedTexts(empty, {"a"}), base::Error);
}

TEST_CASE("breakers are tokens that hold them, or begin them with their rest behind", "[bans]") {
  const std::vector<std::string> texts = {"", "\n", "x\n\n", "ab", "xa", "aa", "b", "bc"};
  const auto encode = [](std::string_view text) {
    std::vector<std::int32_t> ids;
    for (const char c : text) ids.push_back(100 + c);
    return ids;
  };
  const std::vector<std::string> breakers = {"\n", "abc", ""};
  const auto found = sampling::dry_breakers(breakers, texts, encode);
  const auto has = [&](std::int32_t head, const std::vector<std::int32_t>& tail) {
    for (const auto& b : found)
      if (b.head == head && b.tail == tail) return true;
    return false;
  };
  CHECK(found.size() == 5);
  CHECK((has(1, {}) && has(2, {})));
  CHECK(has(3, {100 + 'c'}));
  CHECK((has(4, {100 + 'b', 100 + 'c'}) && has(5, {100 + 'b', 100 + 'c'})));
}

}  // namespace quern::tests
