// Stops are found wherever the text is cut, and no part of one is ever shown.
#include "text/stop_strings.hpp"

#include <random>

#include "base/error.hpp"
#include "catch.hpp"

namespace quern::tests {

namespace {

using text::StopStrings;

// The first place where a stop is complete; of several there the longest. npos: none.
struct Found {
  std::size_t begin = std::string::npos, stop = 0;
};
Found find_first(const std::string& text, const std::vector<std::string>& stops) {
  Found found;
  std::size_t first_end = std::string::npos;
  for (std::size_t i = 0; i < stops.size(); ++i) {
    const std::size_t at = text.find(stops[i]);
    if (at == std::string::npos) continue;
    const std::size_t end = at + stops[i].size();
    if (end < first_end || (end == first_end && at < found.begin)) {
      found = {at, i};
      first_end = end;
    }
  }
  return found;
}

}  // namespace

TEST_CASE("stops are found however the text is cut, and never shown", "[stops]") {
  std::mt19937 random(1);
  const auto text_of = [&](std::size_t least, std::size_t most) {
    std::string text;
    for (std::size_t n = least + random() % (most - least + 1); n > 0; --n)
      text += "ab\n"[random() % 3];
    return text;
  };
  int n_found = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops;
    for (std::size_t n = random() % 4; n > 0; --n) stops.push_back(text_of(2, 6));
    const std::string text = text_of(0, 40);
    const Found expected = find_first(text, stops);
    StopStrings stream(stops);
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = 1 + random() % 7;
      shown += stream.push(std::string_view(text).substr(at, n));
      at += n;
      // What is shown can never have to be taken back.
      CHECK(shown.size() <= expected.begin);
      if (stops.empty()) CHECK(shown.size() == std::min(at, text.size()));
    }
    shown += stream.finish();
    CHECK(shown == text.substr(0, expected.begin));
    CHECK(stream.found().has_value() == (expected.begin != std::string::npos));
    if (stream.found()) CHECK(stops[*stream.found()] == stops[expected.stop]);
    n_found += stream.found() ? 1 : 0;
    if (stream.found()) CHECK(stream.push("more").empty());
  }
  CHECK(n_found > 500);
}

TEST_CASE("text is shown as soon as no stop can begin in it", "[stops]") {
  StopStrings stream({"</answer>", "\n\n"});
  CHECK(stream.push("one</an") == "one");
  CHECK(stream.push("other\n") == "</another");
  CHECK(stream.push("x\n") == "\nx");
  CHECK(stream.finish() == "\n");
}

TEST_CASE("stops without a meaning are usage errors", "[stops]") {
  CHECK_THROWS_AS(StopStrings({""}), base::Error);
  CHECK_THROWS_AS(StopStrings({"a\xFF"}), base::Error);
  CHECK_THROWS_AS(StopStrings(std::vector<std::string>(10001, "a")), base::Error);
}

}  // namespace quern::tests
