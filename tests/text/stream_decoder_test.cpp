#include "text/stream_decoder.hpp"

#include <random>

#include "catch.hpp"

using namespace quern;

TEST_CASE("utf8_lossy replaces maximal subparts as Rust does") {
  struct Case {
    std::string_view bytes, text;
  };
  const Case cases[] = {
      {"", ""},
      {"abc", "abc"},
      {"\xC3\xA9", "\xC3\xA9"},
      {"\xFF", "\uFFFD"},
      {"a\x80z", "a\uFFFDz"},
      {"\xC0\xAF", "\uFFFD\uFFFD"},                      // overlong: two
      {"\xE0\x80\x80", "\uFFFD\uFFFD\uFFFD"},            // overlong
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},            // surrogate
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // above U+10FFFF
      {"\xE2\x82", "\uFFFD"},                            // truncated: one
      {"\xE2\x82z", "\uFFFDz"},
      {"\xF0\x9F\x98", "\uFFFD"},
      {"\xF0\x9F\x98\xF0\x9F\x98\x80", "\uFFFD\U0001F600"},
      {"\xC3\xC3\xA9", "\uFFFD\u00E9"},
      {"\xF1\x80\x80\x41",
       "\uFFFD"
       "A"},
  };
  for (const Case& c : cases) CHECK(text::utf8_lossy(c.bytes) == c.text);
}

TEST_CASE("a stream cut anywhere gives the text of the whole, and never half a character") {
  std::mt19937 random(3);
  const std::string_view parts[] = {"a",    "\u00E9",   "\u5B57",   "\U0001F600", "\xFF",
                                    "\x80", "\xE2\x82", "\xF0\x9F", "\n"};
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (unsigned n = random() % 12; n > 0; --n) bytes += parts[random() % std::size(parts)];
    text::StreamDecoder decoder;
    std::string streamed;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t step = 1 + random() % 3;
      const std::string piece = decoder.push(std::string_view(bytes).substr(at, step));
      REQUIRE(text::is_valid_utf8(piece));
      streamed += piece;
      at += step;
    }
    streamed += decoder.finish();
    REQUIRE(streamed == text::utf8_lossy(bytes));
    REQUIRE((text::is_valid_utf8(bytes) ==
             (streamed == bytes && bytes.find("\xEF\xBF\xBD") == std::string::npos)));
  }
}
