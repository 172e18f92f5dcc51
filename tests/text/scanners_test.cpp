#include "text/scanners.hpp"

#include <random>
#include <vector>

#include "catch.hpp"
#include "cpu_time.hpp"
#include "text/regex.hpp"
#include "text/unicode.hpp"

using namespace quern;

namespace {

const char* const kNames[] = {"gpt2", "llama3", "qwen2", "digits", "digit_runs"};

using Spans = std::vector<std::pair<std::size_t, std::size_t>>;

Spans scanned(const char* name, std::string_view text) {
  Spans out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text::find_scanner(name)(text, at);
    if (end <= at || end > text.size())
      FAIL("a piece that ends at " << end << " of " << text.size());
    out.emplace_back(at, end);
    at = end;
  }
  return out;
}

Spans matched(const text::Regex& regex, std::string_view text) {
  Spans out;
  regex.split(text,
              [&](std::size_t begin, std::size_t end, bool) { out.emplace_back(begin, end); });
  return out;
}

// Every character class, the letters of contractions, every kind of white space, bytes that are not
// UTF-8.
std::string random_text(std::mt19937& random, bool broken) {
  static const char* const parts[] = {
      "a",      "Z",      "s",          "S",      "'",      "'s",     "'LL",    "'\u017F", "re",
      "ve",     " ",      " ",          "\t",     "\n",     "\r",     "\u0085", "\u00A0",  "\u3000",
      "\u180E", "1",      "22",         "\u0663", "\u2163", "\u00BD", "!",      "...",     "\u00E9",
      "\u0301", "\u5B57", "\U0001F600", "\u200B", "_",      "\uE000", "\u0378"};
  static const char* const bad[] = {"\xFF", "\x80", "\xE2\x82", "\xC0\x80"};
  std::string out;
  for (unsigned n = 1 + random() % 14; n > 0; --n) {
    const bool use_bad = broken && random() % 6 == 0;
    out += use_bad ? bad[random() % std::size(bad)] : parts[random() % std::size(parts)];
  }
  return out;
}

}  // namespace

TEST_CASE("each scanner cuts as its regex does") {
  for (const char* name : kNames) {
    INFO(name);
    REQUIRE(text::scanner_for_pattern(text::scanner_pattern(name)) == name);
    const text::Regex regex(text::scanner_pattern(name), "test");
    std::mt19937 random(11);
    for (int round = 0; round < 20000; ++round) {
      const std::string text = random_text(random, false);
      INFO(text);
      REQUIRE(scanned(name, text) == matched(regex, text));
    }
  }
}

TEST_CASE("each scanner agrees with its regex on every code point") {
  for (const char* name : kNames) {
    INFO(name);
    const text::Regex regex(text::scanner_pattern(name), "test");
    for (std::uint32_t code = 0; code < 0x110000; ++code) {
      if (code >= 0xD800 && code < 0xE000) continue;
      if (code > 0x32000 && code < 0xE0000) continue;  // unassigned
      std::string text = "a1 ";
      text::append_utf8(text, code);
      text::append_utf8(text, code);
      text += "b ";
      if (scanned(name, text) != matched(regex, text)) FAIL_CHECK("U+" << std::hex << code);
    }
  }
}

TEST_CASE("scanners cover bytes that are not UTF-8") {
  std::mt19937 random(5);
  for (const char* name : kNames)
    for (int round = 0; round < 5000; ++round) scanned(name, random_text(random, true));
}

TEST_CASE("scanners are linear") {
  for (const char* name : kNames) {
    for (const char* part : {"A", " ", "\n", "^", "7", "\u5B57", "e\u0301", "\n ", " \n", "'s"}) {
      std::string text;
      while (text.size() < 250000) text += part;
      const std::string longer = text + text + text + text;
      const auto scan = [&](const std::string& whole) {
        const text::Scanner next = text::find_scanner(name);
        std::size_t at = 0;
        while (at < whole.size()) at = next(whole, at);
      };
      INFO(name << " over runs of " << part);
      const double once = best_cpu_seconds([&] { scan(text); });
      CHECK(best_cpu_seconds([&] { scan(longer); }) <= kFourfold * once + 0.005);
    }
  }
}
